; Accesses to the symmetric memory of other ranks, by NVSHMEM's functions for one thread. A pointer is the address of the place in this rank's own memory, and in
; bits 48 to 63 the rank (its PE), counted from 1. Where the predicate does not hold nothing is done, and a load gives `other`.

define linkonce_odr i32 @tilewright_symmetric_rank(i64 %pointer) {
  %upper = lshr i64 %pointer, 48
  %number = trunc i64 %upper to i32
  %rank = sub i32 %number, 1
  ret i32 %rank
}

define linkonce_odr ptr @tilewright_symmetric_place(i64 %pointer) {
  %address = and i64 %pointer, 281474976710655
  %place = inttoptr i64 %address to ptr
  ret ptr %place
}

declare void @nvshmem_quiet()

; What this thread, and who has come to a barrier with it, has sent is there.
define linkonce_odr void @tilewright_symmetric_quiet(i1 %where) {
  br i1 %where, label %do, label %done
do:
  call void @nvshmem_quiet()
  br label %done
done:
  ret void
}

declare void @nvshmemx_putmem_nbi_warp(ptr, ptr, i64, i32) convergent

; The lanes of a warp come here together, with the same arguments.
define linkonce_odr void @tilewright_symmetric_send(i1 %where, i64 %pointer, i64 %source, i64 %bytes) convergent {
  br i1 %where, label %do, label %done
do:
  %rank = call i32 @tilewright_symmetric_rank(i64 %pointer)
  %place = call ptr @tilewright_symmetric_place(i64 %pointer)
  %from = inttoptr i64 %source to ptr
  call void @nvshmemx_putmem_nbi_warp(ptr %place, ptr %from, i64 %bytes, i32 %rank) convergent
  br label %done
done:
  ret void
}

declare i8 @nvshmem_uint8_g(ptr, i32)
declare void @nvshmem_uint8_p(ptr, i8, i32)

define linkonce_odr i16 @tilewright_symmetric_get8(i1 %where, i64 %pointer, i16 %other) {
  br i1 %where, label %do, label %done
do:
  %rank = call i32 @tilewright_symmetric_rank(i64 %pointer)
  %place = call ptr @tilewright_symmetric_place(i64 %pointer)
  %byte = call i8 @nvshmem_uint8_g(ptr %place, i32 %rank)
  %found = zext i8 %byte to i16
  br label %done
done:
  %result = phi i16 [ %found, %do ], [ %other, %0 ]
  ret i16 %result
}

define linkonce_odr void @tilewright_symmetric_put8(i1 %where, i64 %pointer, i16 %value) {
  br i1 %where, label %do, label %done
do:
  %rank = call i32 @tilewright_symmetric_rank(i64 %pointer)
  %place = call ptr @tilewright_symmetric_place(i64 %pointer)
  %byte = trunc i16 %value to i8
  call void @nvshmem_uint8_p(ptr %place, i8 %byte, i32 %rank)
  br label %done
done:
  ret void
}

declare i16 @nvshmem_uint16_g(ptr, i32)
declare void @nvshmem_uint16_p(ptr, i16, i32)

define linkonce_odr i16 @tilewright_symmetric_get16(i1 %where, i64 %pointer, i16 %other) {
  br i1 %where, label %do, label %done
do:
  %rank = call i32 @tilewright_symmetric_rank(i64 %pointer)
  %place = call ptr @tilewright_symmetric_place(i64 %pointer)
  %found = call i16 @nvshmem_uint16_g(ptr %place, i32 %rank)
  br label %done
done:
  %result = phi i16 [ %found, %do ], [ %other, %0 ]
  ret i16 %result
}

define linkonce_odr void @tilewright_symmetric_put16(i1 %where, i64 %pointer, i16 %value) {
  br i1 %where, label %do, label %done
do:
  %rank = call i32 @tilewright_symmetric_rank(i64 %pointer)
  %place = call ptr @tilewright_symmetric_place(i64 %pointer)
  call void @nvshmem_uint16_p(ptr %place, i16 %value, i32 %rank)
  br label %done
done:
  ret void
}

declare i32 @nvshmem_uint32_g(ptr, i32)
declare void @nvshmem_uint32_p(ptr, i32, i32)

define linkonce_odr i32 @tilewright_symmetric_get32(i1 %where, i64 %pointer, i32 %other) {
  br i1 %where, label %do, label %done
do:
  %rank = call i32 @tilewright_symmetric_rank(i64 %pointer)
  %place = call ptr @tilewright_symmetric_place(i64 %pointer)
  %found = call i32 @nvshmem_uint32_g(ptr %place, i32 %rank)
  br label %done
done:
  %result = phi i32 [ %found, %do ], [ %other, %0 ]
  ret i32 %result
}

define linkonce_odr void @tilewright_symmetric_put32(i1 %where, i64 %pointer, i32 %value) {
  br i1 %where, label %do, label %done
do:
  %rank = call i32 @tilewright_symmetric_rank(i64 %pointer)
  %place = call ptr @tilewright_symmetric_place(i64 %pointer)
  call void @nvshmem_uint32_p(ptr %place, i32 %value, i32 %rank)
  br label %done
done:
  ret void
}

declare i64 @nvshmem_uint64_g(ptr, i32)
declare void @nvshmem_uint64_p(ptr, i64, i32)

define linkonce_odr i64 @tilewright_symmetric_get64(i1 %where, i64 %pointer, i64 %other) {
  br i1 %where, label %do, label %done
do:
  %rank = call i32 @tilewright_symmetric_rank(i64 %pointer)
  %place = call ptr @tilewright_symmetric_place(i64 %pointer)
  %found = call i64 @nvshmem_uint64_g(ptr %place, i32 %rank)
  br label %done
done:
  %result = phi i64 [ %found, %do ], [ %other, %0 ]
  ret i64 %result
}

define linkonce_odr void @tilewright_symmetric_put64(i1 %where, i64 %pointer, i64 %value) {
  br i1 %where, label %do, label %done
do:
  %rank = call i32 @tilewright_symmetric_rank(i64 %pointer)
  %place = call ptr @tilewright_symmetric_place(i64 %pointer)
  call void @nvshmem_uint64_p(ptr %place, i64 %value, i32 %rank)
  br label %done
done:
  ret void
}

declare i32 @nvshmem_uint32_atomic_fetch_add(ptr, i32, i32)

define linkonce_odr i32 @tilewright_symmetric_add32(i1 %where, i64 %pointer, i32 %value) {
  br i1 %where, label %do, label %done
do:
  %rank = call i32 @tilewright_symmetric_rank(i64 %pointer)
  %place = call ptr @tilewright_symmetric_place(i64 %pointer)
  %found = call i32 @nvshmem_uint32_atomic_fetch_add(ptr %place, i32 %value, i32 %rank)
  br label %done
done:
  %result = phi i32 [ %found, %do ], [ 0, %0 ]
  ret i32 %result
}

declare i32 @nvshmem_uint32_atomic_fetch_and(ptr, i32, i32)

define linkonce_odr i32 @tilewright_symmetric_and32(i1 %where, i64 %pointer, i32 %value) {
  br i1 %where, label %do, label %done
do:
  %rank = call i32 @tilewright_symmetric_rank(i64 %pointer)
  %place = call ptr @tilewright_symmetric_place(i64 %pointer)
  %found = call i32 @nvshmem_uint32_atomic_fetch_and(ptr %place, i32 %value, i32 %rank)
  br label %done
done:
  %result = phi i32 [ %found, %do ], [ 0, %0 ]
  ret i32 %result
}

declare i32 @nvshmem_uint32_atomic_fetch_or(ptr, i32, i32)

define linkonce_odr i32 @tilewright_symmetric_or32(i1 %where, i64 %pointer, i32 %value) {
  br i1 %where, label %do, label %done
do:
  %rank = call i32 @tilewright_symmetric_rank(i64 %pointer)
  %place = call ptr @tilewright_symmetric_place(i64 %pointer)
  %found = call i32 @nvshmem_uint32_atomic_fetch_or(ptr %place, i32 %value, i32 %rank)
  br label %done
done:
  %result = phi i32 [ %found, %do ], [ 0, %0 ]
  ret i32 %result
}

declare i32 @nvshmem_uint32_atomic_fetch_xor(ptr, i32, i32)

define linkonce_odr i32 @tilewright_symmetric_xor32(i1 %where, i64 %pointer, i32 %value) {
  br i1 %where, label %do, label %done
do:
  %rank = call i32 @tilewright_symmetric_rank(i64 %pointer)
  %place = call ptr @tilewright_symmetric_place(i64 %pointer)
  %found = call i32 @nvshmem_uint32_atomic_fetch_xor(ptr %place, i32 %value, i32 %rank)
  br label %done
done:
  %result = phi i32 [ %found, %do ], [ 0, %0 ]
  ret i32 %result
}

declare i32 @nvshmem_uint32_atomic_swap(ptr, i32, i32)

define linkonce_odr i32 @tilewright_symmetric_exch32(i1 %where, i64 %pointer, i32 %value) {
  br i1 %where, label %do, label %done
do:
  %rank = call i32 @tilewright_symmetric_rank(i64 %pointer)
  %place = call ptr @tilewright_symmetric_place(i64 %pointer)
  %found = call i32 @nvshmem_uint32_atomic_swap(ptr %place, i32 %value, i32 %rank)
  br label %done
done:
  %result = phi i32 [ %found, %do ], [ 0, %0 ]
  ret i32 %result
}

declare i32 @nvshmem_uint32_atomic_compare_swap(ptr, i32, i32, i32)

define linkonce_odr i32 @tilewright_symmetric_cas32(i1 %where, i64 %pointer, i32 %expected, i32 %value) {
  br i1 %where, label %do, label %done
do:
  %rank = call i32 @tilewright_symmetric_rank(i64 %pointer)
  %place = call ptr @tilewright_symmetric_place(i64 %pointer)
  %found = call i32 @nvshmem_uint32_atomic_compare_swap(ptr %place, i32 %expected, i32 %value, i32 %rank)
  br label %done
done:
  %result = phi i32 [ %found, %do ], [ 0, %0 ]
  ret i32 %result
}

declare i64 @nvshmem_uint64_atomic_fetch_add(ptr, i64, i32)

define linkonce_odr i64 @tilewright_symmetric_add64(i1 %where, i64 %pointer, i64 %value) {
  br i1 %where, label %do, label %done
do:
  %rank = call i32 @tilewright_symmetric_rank(i64 %pointer)
  %place = call ptr @tilewright_symmetric_place(i64 %pointer)
  %found = call i64 @nvshmem_uint64_atomic_fetch_add(ptr %place, i64 %value, i32 %rank)
  br label %done
done:
  %result = phi i64 [ %found, %do ], [ 0, %0 ]
  ret i64 %result
}

declare i64 @nvshmem_uint64_atomic_fetch_and(ptr, i64, i32)

define linkonce_odr i64 @tilewright_symmetric_and64(i1 %where, i64 %pointer, i64 %value) {
  br i1 %where, label %do, label %done
do:
  %rank = call i32 @tilewright_symmetric_rank(i64 %pointer)
  %place = call ptr @tilewright_symmetric_place(i64 %pointer)
  %found = call i64 @nvshmem_uint64_atomic_fetch_and(ptr %place, i64 %value, i32 %rank)
  br label %done
done:
  %result = phi i64 [ %found, %do ], [ 0, %0 ]
  ret i64 %result
}

declare i64 @nvshmem_uint64_atomic_fetch_or(ptr, i64, i32)

define linkonce_odr i64 @tilewright_symmetric_or64(i1 %where, i64 %pointer, i64 %value) {
  br i1 %where, label %do, label %done
do:
  %rank = call i32 @tilewright_symmetric_rank(i64 %pointer)
  %place = call ptr @tilewright_symmetric_place(i64 %pointer)
  %found = call i64 @nvshmem_uint64_atomic_fetch_or(ptr %place, i64 %value, i32 %rank)
  br label %done
done:
  %result = phi i64 [ %found, %do ], [ 0, %0 ]
  ret i64 %result
}

declare i64 @nvshmem_uint64_atomic_fetch_xor(ptr, i64, i32)

define linkonce_odr i64 @tilewright_symmetric_xor64(i1 %where, i64 %pointer, i64 %value) {
  br i1 %where, label %do, label %done
do:
  %rank = call i32 @tilewright_symmetric_rank(i64 %pointer)
  %place = call ptr @tilewright_symmetric_place(i64 %pointer)
  %found = call i64 @nvshmem_uint64_atomic_fetch_xor(ptr %place, i64 %value, i32 %rank)
  br label %done
done:
  %result = phi i64 [ %found, %do ], [ 0, %0 ]
  ret i64 %result
}

declare i64 @nvshmem_uint64_atomic_swap(ptr, i64, i32)

define linkonce_odr i64 @tilewright_symmetric_exch64(i1 %where, i64 %pointer, i64 %value) {
  br i1 %where, label %do, label %done
do:
  %rank = call i32 @tilewright_symmetric_rank(i64 %pointer)
  %place = call ptr @tilewright_symmetric_place(i64 %pointer)
  %found = call i64 @nvshmem_uint64_atomic_swap(ptr %place, i64 %value, i32 %rank)
  br label %done
done:
  %result = phi i64 [ %found, %do ], [ 0, %0 ]
  ret i64 %result
}

declare i64 @nvshmem_uint64_atomic_compare_swap(ptr, i64, i64, i32)

define linkonce_odr i64 @tilewright_symmetric_cas64(i1 %where, i64 %pointer, i64 %expected, i64 %value) {
  br i1 %where, label %do, label %done
do:
  %rank = call i32 @tilewright_symmetric_rank(i64 %pointer)
  %place = call ptr @tilewright_symmetric_place(i64 %pointer)
  %found = call i64 @nvshmem_uint64_atomic_compare_swap(ptr %place, i64 %expected, i64 %value, i32 %rank)
  br label %done
done:
  %result = phi i64 [ %found, %do ], [ 0, %0 ]
  ret i64 %result
}
