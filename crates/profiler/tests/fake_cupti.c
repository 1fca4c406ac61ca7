// A stand-in for CUPTI that needs no GPU: a test says what is launched (`fake_launch`), and the callbacks and records come as CUPTI gives them.
// FAKE_CUPTI_SUBSCRIBE is what cuptiSubscribe returns, FAKE_CUPTI_VERSION what cuptiGetVersion says.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef void (*Callback)(void *, int, uint32_t, const void *);
typedef void (*Requested)(uint8_t **, size_t *, size_t *);
typedef void (*Completed)(void *, uint32_t, uint8_t *, size_t, size_t);

// CUpti_CallbackData, and CUpti_ActivityKernel10 as far as it is read.
struct data { uint32_t site, pad; const char *function; const void *params; void *result; const char *symbol; void *context; uint32_t uid; uint64_t *own; uint32_t number; };
enum { RECORD = 216, MOST = 64 };

static Callback callback;
static Requested requested;
static Completed completed;
static uint8_t enabled[3][1024];
static int recording;
static uint8_t *buffer;
static size_t size, used, dropped;
static uint64_t now = 1000;

static int setting(const char *name, int otherwise) { const char *v = getenv(name); return v && *v ? atoi(v) : otherwise; }

int cuptiGetVersion(uint32_t *v) { *v = setting("FAKE_CUPTI_VERSION", 26); return 0; }
int cuptiGetResultString(int code, const char **s) {
  *s = code == 39 ? "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED" : "CUPTI_ERROR_FAKE";
  return code == 77;
}
int cuptiGetTimestamp(uint64_t *t) { *t = now; return 0; }
int cuptiSubscribe(void **handle, Callback f, void *user) {
  (void)user;
  if (callback) return 39;
  int code = setting("FAKE_CUPTI_SUBSCRIBE", 0);
  if (code == 0) { callback = f; *handle = &callback; }
  return code;
}
int cuptiUnsubscribe(void *handle) { if (handle != &callback) return 1; callback = 0; return 0; }
int cuptiEnableCallback(uint32_t on, void *handle, int domain, uint32_t call) {
  if (handle != &callback || domain < 1 || domain > 2 || call > 500) return 1;
  enabled[domain][call] = on;
  return 0;
}
int cuptiActivityRegisterCallbacks(Requested r, Completed c) { requested = r; completed = c; return 0; }
int cuptiActivityEnable(int kind) { if (kind != 10) return 21; recording = 1; return 0; }
int cuptiActivityDisable(int kind) { if (kind != 10) return 21; recording = 0; return 0; }
static void hand_over(void) { uint8_t *full = buffer; buffer = 0; if (full) completed(0, 0, full, size, used); }
int cuptiActivityFlushAll(uint32_t flag) { (void)flag; hand_over(); return 0; }
int cuptiActivityGetNextRecord(uint8_t *base, size_t valid, uint8_t **record) {
  uint8_t *next = *record ? *record + RECORD : base;
  if (next + RECORD > base + valid) return 12;
  *record = next;
  return 0;
}
int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *n) { (void)context; (void)stream; *n = dropped; dropped = 0; return 0; }

static void put(uint8_t *record, size_t at, const void *value, size_t bytes) { memcpy(record + at, value, bytes); }
static void kernel(const char *name, uint32_t number, uint32_t stream, uint32_t graph, uint64_t took) {
  if (!recording) return;
  if (!buffer) { size_t most; requested(&buffer, &size, &most); used = 0; }
  if (!buffer) { dropped++; return; }
  uint8_t *record = buffer + used;
  uint32_t kind = 10, device = 0;
  uint64_t end = now + took;
  memset(record, 0, RECORD);
  put(record, 0, &kind, 4); put(record, 16, &now, 8); put(record, 24, &end, 8); put(record, 40, &device, 4);
  put(record, 48, &stream, 4); put(record, 92, &number, 4); put(record, 104, &name, 8); put(record, 156, &graph, 4);
  now = end;
  used += RECORD;
  if (used + RECORD > size || used >= MOST * RECORD) hand_over();
}

static void call(int domain, uint32_t id, uint32_t site, uint32_t number) {
  struct data data = {.site = site, .number = number};
  if (callback && enabled[domain][id]) callback(0, domain, id, &data);
}

// A launch of `kernels` kernels of a name, which must live on, that take so many ns each. By the runtime's call, which makes it through the driver's
// with a number of its own, or by the driver's alone; more than one is a graph's.
void fake_launch(const char *name, uint32_t number, int by_runtime, uint32_t kernels, uint64_t took) {
  if (by_runtime) call(2, 211, 0, number);
  call(1, kernels == 1 ? 307 : 442, 0, number + by_runtime);
  for (uint32_t i = 0; i < kernels; i++) kernel(name, number, 7, kernels > 1 ? 5 : 0, took);
  call(1, kernels == 1 ? 307 : 442, 1, number + by_runtime);
  if (by_runtime) call(2, 211, 1, number);
}
// A kernel of which nobody saw the launch, and records that there was no room for.
void fake_stranger(const char *name) { kernel(name, 4000000000u, 7, 0, 10); }
void fake_drop(size_t n) { dropped += n; }
int fake_subscribed(void) { return callback != 0; }
int fake_recording(void) { return recording; }
