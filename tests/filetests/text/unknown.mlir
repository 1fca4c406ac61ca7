// Operations, types and attributes of other dialects pass through.
// RUN: -canonicalize -cse -dce
// CHECK: [[X:%.*]] = arith.constant 1 : i32
// CHECK-NEXT: [[R:%.*]]:2 = "foo.op"([[X]]) <{p = #foo.attr<"x">}> ({
// CHECK-NEXT: "foo.inner"() : () -> ()
// CHECK-NEXT: }) {a} : (i32) -> (i32, !foo.type)
// CHECK-NOT: arith.constant
// CHECK: "foo.use"([[R]]#1)
tt.func @f() {
  %0 = arith.constant 1 : i32
  %1 = arith.constant 1 : i32
  %2:2 = "foo.op"(%1) <{p = #foo.attr<"x">}> ({
    "foo.inner"() : () -> ()
  }) {a} : (i32) -> (i32, !foo.type)
  %3 = arith.constant 5 : i32
  "foo.use"(%2#1) : (!foo.type) -> ()
  tt.return
}
