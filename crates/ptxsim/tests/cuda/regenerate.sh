#!/bin/sh
# Compiles every .cu here to PTX. Needs an nvcc on the PATH (PyPI: nvidia-cuda-nvcc, nvidia-nvvm, nvidia-cuda-crt, nvidia-cuda-cccl,
# nvidia-cuda-runtime). Directories are cut from file names so that the output does not depend on the machine.
set -e
cd "$(dirname "$0")"
for f in *.cu; do
    arch=$(sed -n 's/^\/\/ arch: //p' "$f")
    nvcc -ptx -lineinfo -arch="${arch:-sm_80}" "$f" -o "${f%.cu}.ptx"
    sed -i -E 's#(\.file\s+[0-9]+ ").*/([^/"]+")#\1\2#; /^\/\/ Compiler Build ID/d' "${f%.cu}.ptx"
done
