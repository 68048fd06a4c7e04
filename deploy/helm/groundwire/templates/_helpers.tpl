{{- define "groundwire.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "groundwire.selectorLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "groundwire.labels" -}}
{{ include "groundwire.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "groundwire.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "groundwire.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "groundwire.image" -}}
{{ .Values.image.repository }}{{ with .Values.image.digest }}@{{ . }}{{ else }}:{{ default .Chart.AppVersion .Values.image.tag }}{{ end }}
{{- end -}}

{{/* The container; its argument is a list of the context and the address to listen on. */}}
{{- define "groundwire.container" -}}
{{- $host := index . 1 -}}
{{- with index . 0 -}}
name: groundwire
image: {{ include "groundwire.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
args: [serve, --config, /etc/groundwire/config.yaml, --host, {{ $host }}, --port, "8080"]
{{- if or .Values.env .Values.secrets.clientKeys.name }}
env:
  {{- if .Values.secrets.clientKeys.name }}
  - {name: GROUNDWIRE_SERVER__KEYS, value: /etc/groundwire-keys/{{ .Values.secrets.clientKeys.key }}}
  {{- end }}
  {{- with .Values.env }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
{{- with .Values.secrets.variables }}
envFrom:
  {{- range . }}
  - secretRef: {name: {{ . }}}
  {{- end }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  readOnlyRootFilesystem: true
  allowPrivilegeEscalation: false
  capabilities: {drop: [ALL]}
  seccompProfile: {type: RuntimeDefault}
resources: {{- toYaml .Values.resources | nindent 2 }}
volumeMounts:
  - {name: groundwire-config, mountPath: /etc/groundwire, readOnly: true}
  - {name: groundwire-tmp, mountPath: /tmp}
  {{- if .Values.secrets.clientKeys.name }}
  - {name: groundwire-keys, mountPath: /etc/groundwire-keys, readOnly: true}
  {{- end }}
{{- end -}}
{{- end -}}

{{- define "groundwire.volumes" -}}
- name: groundwire-config
  configMap: {name: {{ include "groundwire.fullname" . }}}
- name: groundwire-tmp
  emptyDir: {}
{{- if .Values.secrets.clientKeys.name }}
- name: groundwire-keys
  secret: {secretName: {{ .Values.secrets.clientKeys.name }}}
{{- end }}
{{- end -}}

{{/* The parts of a pod that both modes share. */}}
{{- define "groundwire.pod" -}}
serviceAccountName: {{ include "groundwire.serviceAccount" . }}
automountServiceAccountToken: false
terminationGracePeriodSeconds: {{ .Values.terminationGracePeriodSeconds }}
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
