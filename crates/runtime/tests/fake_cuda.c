// A stand-in for libcuda with the entry points that the runtime asks for: one GPU with two megabytes of "device memory"
// in the host's heap. It writes a line for each call of interest to the file that FAKE_CUDA_LOG names, so that a test
// sees what a real driver would have been told. A "cubin" is the ELF magic followed by the number of parameters.

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int CUresult;

static void *current;
static int context; // its address is the primary context

static void note(const char *format, ...) {
  const char *path = getenv("FAKE_CUDA_LOG");
  if (!path) return;
  FILE *f = fopen(path, "a");
  if (!f) return;
  va_list args;
  va_start(args, format);
  vfprintf(f, format, args);
  va_end(args);
  fputc('\n', f);
  fclose(f);
}

CUresult cuInit(unsigned flags) { return flags ? 1 : 0; }
CUresult cuDriverGetVersion(int *v) { *v = 12080; return 0; }
CUresult cuGetErrorName(CUresult e, const char **s) {
  *s = e == 1 ? "CUDA_ERROR_INVALID_VALUE" : e == 500 ? "CUDA_ERROR_NOT_FOUND" : "CUDA_ERROR_FAKE";
  return 0;
}
CUresult cuGetErrorString(CUresult e, const char **s) { *s = e == 1 ? "invalid argument" : "fake"; return 0; }
CUresult cuDeviceGetCount(int *n) { *n = 1; return 0; }
CUresult cuDeviceGet(int *d, int i) { *d = i; return i ? 101 : 0; }
CUresult cuDeviceGetName(char *s, int n, int d) { (void)d; snprintf(s, n, "Fake H100"); return 0; }
CUresult cuDeviceGetAttribute(int *v, int id, int d) {
  (void)d;
  switch (id) {
    case 75: *v = 9; break;
    case 76: *v = 0; break;
    case 16: *v = 132; break;
    case 97: *v = 232448; break;
    case 8: *v = 49152; break;
    case 10: *v = 32; break;
    case 1: *v = 1024; break;
    case 5: *v = 2147483647; break;
    case 6: case 7: *v = 65535; break;
    default: *v = 65536;
  }
  return 0;
}
CUresult cuDeviceTotalMem_v2(size_t *n, int d) { (void)d; *n = 2 << 20; return 0; }
CUresult cuDevicePrimaryCtxRetain(void **c, int d) { (void)d; *c = &context; note("retain"); return 0; }
CUresult cuDevicePrimaryCtxGetState(int d, unsigned *f, int *a) { (void)d; *f = 0; *a = current != 0; return 0; }
CUresult cuCtxGetCurrent(void **c) { *c = current; return 0; }
CUresult cuCtxSetCurrent(void *c) { current = c; note("set_current"); return 0; }
CUresult cuCtxGetDevice(int *d) { *d = 0; return 0; }
CUresult cuCtxSynchronize(void) { note("synchronize"); return 0; }

CUresult cuModuleLoadDataEx(void **m, const void *image, unsigned n, int *options, void **values) {
  const char *text = image;
  if (memcmp(text, "\x7f" "ELF", 4) == 0) {
    *m = malloc(sizeof(int));
    *(int *)*m = text[4];
    note("load cubin");
    return 0;
  }
  for (unsigned i = 0; i < n; i++) // CU_JIT_ERROR_LOG_BUFFER
    if (options[i] == 5 && strstr(text, "bad")) strcpy(values[i], "line 3: bad instruction");
  if (strstr(text, "bad")) return 218;
  *m = malloc(sizeof(int));
  *(int *)*m = 1;
  note("load ptx");
  return 0;
}
CUresult cuModuleUnload(void *m) { free(m); note("unload"); return 0; }
CUresult cuModuleGetFunction(void **f, void *m, const char *name) {
  if (strcmp(name, "missing") == 0) return 500;
  *f = m;
  return 0;
}
CUresult cuFuncGetAttribute(int *v, int id, void *f) {
  (void)f;
  *v = id == 0 ? 256 : id == 1 ? 128 : id == 3 ? 8 : id == 4 ? 42 : 0;
  return 0;
}
CUresult cuFuncSetAttribute(void *f, int id, int v) { (void)f; note("attribute %d = %d", id, v); return 0; }
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *n, void *f, int threads, size_t bytes) {
  (void)f;
  note("resident: %d threads, %d bytes", threads, (int)bytes);
  *n = 2;
  return 0;
}

static void parameters(void *f, void **p) {
  for (int i = 0; i < *(int *)f; i++) {
    uint64_t value;
    memcpy(&value, p[i], 8);
    note("  parameter %d = 0x%llx", i, (unsigned long long)value);
  }
}
CUresult cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                        unsigned shared, void *stream, void **p, void **extra) {
  (void)extra;
  if (bx > 256) return 1;
  note("launch grid %u %u %u block %u %u %u shared %u stream %p", gx, gy, gz, bx, by, bz, shared, stream);
  parameters(f, p);
  return 0;
}
struct attribute { unsigned id; char pad[4]; unsigned value[16]; };
struct config { unsigned grid[3], block[3], shared; void *stream; struct attribute *attributes; unsigned count; };
CUresult cuLaunchKernelEx(const struct config *c, void *f, void **p, void **extra) {
  (void)extra;
  note("launch_ex grid %u %u %u block %u shared %u stream %p", c->grid[0], c->grid[1], c->grid[2], c->block[0],
       c->shared, c->stream);
  for (unsigned i = 0; i < c->count; i++)
    note("  attribute %u = %u %u %u", c->attributes[i].id, c->attributes[i].value[0], c->attributes[i].value[1],
         c->attributes[i].value[2]);
  parameters(f, p);
  return 0;
}
CUresult cuOccupancyMaxActiveClusters(int *n, void *f, const struct config *c) {
  (void)f;
  for (unsigned i = 0; i < c->count; i++)
    if (c->attributes[i].id == 4)
      note("resident: clusters of %u, %u threads, %u bytes", c->attributes[i].value[0], c->block[0], c->shared);
  *n = 66;
  return 0;
}
CUresult cuTensorMapEncodeTiled(void *map, int element, unsigned rank, void *address, const uint64_t *dims,
                                const uint64_t *strides, const unsigned *box, const unsigned *steps, int interleave,
                                int swizzle, int promotion, int fill) {
  if ((uintptr_t)map % 64 || interleave) return 1;
  note("map of %d: rank %u dims %llu.. strides %llu.. box %u.. steps %u swizzle %d promotion %d fill %d", element, rank,
       (unsigned long long)dims[0], (unsigned long long)strides[0], box[0], steps[rank - 1], swizzle, promotion, fill);
  memset(map, 0, 128);
  *(uint64_t *)map = (uint64_t)(uintptr_t)address + 1;
  return 0;
}
CUresult cuMemAlloc_v2(uint64_t *p, size_t n) {
  if (n > 2 << 20) return 2;
  *p = (uint64_t)(uintptr_t)malloc(n);
  return 0;
}
CUresult cuMemFree_v2(uint64_t p) { free((void *)(uintptr_t)p); return 0; }
CUresult cuMemcpyHtoD_v2(uint64_t d, const void *s, size_t n) { memcpy((void *)(uintptr_t)d, s, n); return 0; }
CUresult cuMemcpyDtoH_v2(void *d, uint64_t s, size_t n) { memcpy(d, (void *)(uintptr_t)s, n); return 0; }
CUresult cuMemsetD8Async(uint64_t d, unsigned char v, size_t n, void *s) {
  (void)s;
  memset((void *)(uintptr_t)d, v, n);
  return 0;
}
CUresult cuPointerGetAttribute(void *out, int id, uint64_t p) {
  (void)id;
  if (p < 4096) return 1;
  *(uint64_t *)out = p;
  return 0;
}
CUresult cuStreamSynchronize(void *s) { (void)s; return 0; }
CUresult cuEventCreate(void **e, unsigned flags) { (void)flags; *e = malloc(1); return 0; }
CUresult cuEventRecord(void *e, void *s) { (void)e; (void)s; return 0; }
CUresult cuEventSynchronize(void *e) { (void)e; return 0; }
CUresult cuEventElapsedTime(float *ms, void *a, void *b) { (void)a; (void)b; *ms = 1.5f; return 0; }
CUresult cuEventDestroy_v2(void *e) { free(e); return 0; }
