//! ttg to LLVM IR for NVPTX, PTX and cubin.
