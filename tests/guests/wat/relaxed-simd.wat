(module
  ;; Every relaxed SIMD operation, which processors answer differently where the standard lets them,
  ;; over triples of vectors with NaNs, infinities, lanes out of range and numbers that only round alike.
  ;; One output an operation: a hash of the bits of all answers.
  (import "wasi_snapshot_preview1" "fd_write"
    (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 1000) "\f0\03\00\00\1c\00\00\00")
  (data (i32.const 1008) "{\22data\22:\22................\22}\n")
  (data (i32.const 0)
    "\00\00\00\00\00\00\00\80\00\00\80\3f\00\00\80\bf"
    "\00\00\80\7f\00\00\80\ff\00\00\c0\7f\01\00\a0\ff"
    "\01\00\00\00\ff\ff\7f\7f\00\00\00\4f\00\00\00\df"
    "\cd\cc\cc\3d\12\ab\45\40\fe\ff\ff\4e\db\ff\4f\c1")
  (data (i32.const 64)
    "\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\80"
    "\00\00\00\00\00\00\f0\3f\00\00\00\00\00\00\f0\bf"
    "\00\00\00\00\00\00\f0\7f\00\00\00\00\00\00\f0\ff"
    "\00\00\00\00\00\00\f8\7f\01\ef\be\ad\de\f4\ff\ff"
    "\01\00\00\00\00\00\00\00\ff\ff\ff\ff\ff\ff\ef\7f"
    "\00\00\00\00\00\00\e0\41\00\00\00\00\00\00\e0\c3"
    "\9a\99\99\99\99\99\b9\3f\d5\ab\30\f8\c6\a5\0f\40"
    "\00\00\00\e0\ff\ff\ef\41\00\00\00\20\ff\ff\df\41")
  (data (i32.const 192)
    "\00\01\02\0f\10\11\1f\20\7f\80\81\c0\fe\ff\55\aa"
    "\00\80\00\80\ff\7f\ff\7f\01\80\fe\7f\ff\ff\00\00")
  (global $hash (mut i64) (i64.const 0))
  (type $operation (func (param v128 v128 v128) (result v128)))
  (func $o0 (type $operation) (f32x4.relaxed_madd (local.get 0) (local.get 1) (local.get 2)))
  (func $o1 (type $operation) (f32x4.relaxed_nmadd (local.get 0) (local.get 1) (local.get 2)))
  (func $o2 (type $operation) (f64x2.relaxed_madd (local.get 0) (local.get 1) (local.get 2)))
  (func $o3 (type $operation) (f64x2.relaxed_nmadd (local.get 0) (local.get 1) (local.get 2)))
  (func $o4 (type $operation) (i8x16.relaxed_laneselect (local.get 0) (local.get 1) (local.get 2)))
  (func $o5 (type $operation) (i16x8.relaxed_laneselect (local.get 0) (local.get 1) (local.get 2)))
  (func $o6 (type $operation) (i32x4.relaxed_laneselect (local.get 0) (local.get 1) (local.get 2)))
  (func $o7 (type $operation) (i64x2.relaxed_laneselect (local.get 0) (local.get 1) (local.get 2)))
  (func $o8 (type $operation) (i32x4.relaxed_dot_i8x16_i7x16_add_s (local.get 0) (local.get 1) (local.get 2)))
  (func $o9 (type $operation) (i8x16.relaxed_swizzle (local.get 0) (local.get 1)))
  (func $o10 (type $operation) (f32x4.relaxed_min (local.get 0) (local.get 1)))
  (func $o11 (type $operation) (f32x4.relaxed_max (local.get 0) (local.get 1)))
  (func $o12 (type $operation) (f64x2.relaxed_min (local.get 0) (local.get 1)))
  (func $o13 (type $operation) (f64x2.relaxed_max (local.get 0) (local.get 1)))
  (func $o14 (type $operation) (i16x8.relaxed_q15mulr_s (local.get 0) (local.get 1)))
  (func $o15 (type $operation) (i16x8.relaxed_dot_i8x16_i7x16_s (local.get 0) (local.get 1)))
  (func $o16 (type $operation) (i32x4.relaxed_trunc_f32x4_s (local.get 0)))
  (func $o17 (type $operation) (i32x4.relaxed_trunc_f32x4_u (local.get 0)))
  (func $o18 (type $operation) (i32x4.relaxed_trunc_f64x2_s_zero (local.get 0)))
  (func $o19 (type $operation) (i32x4.relaxed_trunc_f64x2_u_zero (local.get 0)))
  (table 20 funcref)
  (elem (i32.const 0) $o0 $o1 $o2 $o3 $o4 $o5 $o6 $o7 $o8 $o9 $o10 $o11 $o12 $o13 $o14 $o15 $o16 $o17 $o18 $o19)
  ;; FNV-1a over eight bytes more.
  (func $mix (param $bits i64)
    (local $left i32)
    (local.set $left (i32.const 8))
    (loop $next
      (global.set $hash (i64.mul (i64.const 0x100000001b3)
        (i64.xor (global.get $hash) (i64.and (local.get $bits) (i64.const 255)))))
      (local.set $bits (i64.shr_u (local.get $bits) (i64.const 8)))
      (br_if $next (local.tee $left (i32.sub (local.get $left) (i32.const 1))))))
  (func $mix_vector (param $bits v128)
    (call $mix (i64x2.extract_lane 0 (local.get $bits)))
    (call $mix (i64x2.extract_lane 1 (local.get $bits))))
  (func $begin (global.set $hash (i64.const 0xcbf29ce484222325)))
  ;; Writes the eight bytes of a number as an output: sixteen hexadecimal digits, which are base64, too.
  (func $tell (param $number i64)
    (local $digit i32) (local $at i32)
    (local.set $at (i32.const 1032))
    (loop $next
      (local.set $digit (i32.wrap_i64 (i64.and (local.get $number) (i64.const 15))))
      (i32.store8 (local.get $at) (i32.add (local.get $digit)
        (select (i32.const 48) (i32.const 87) (i32.lt_u (local.get $digit) (i32.const 10)))))
      (local.set $number (i64.shr_u (local.get $number) (i64.const 4)))
      (local.set $at (i32.sub (local.get $at) (i32.const 1)))
      (br_if $next (i32.ge_u (local.get $at) (i32.const 1017))))
    (drop (call $write (i32.const 1) (i32.const 1000) (i32.const 1) (i32.const 996))))
  (func $try (param $operation i32)
    (local $one i32) (local $two i32) (local $three i32)
    (call $begin)
    (loop $ones
      (local.set $two (i32.const 0))
      (loop $twos
        (local.set $three (i32.const 0))
        (loop $threes
          (call $mix_vector (call_indirect (type $operation)
            (v128.load (local.get $one)) (v128.load (local.get $two)) (v128.load (local.get $three))
            (local.get $operation)))
          (br_if $threes (i32.lt_u (local.tee $three (i32.add (local.get $three) (i32.const 16))) (i32.const 224))))
        (br_if $twos (i32.lt_u (local.tee $two (i32.add (local.get $two) (i32.const 16))) (i32.const 224))))
      (br_if $ones (i32.lt_u (local.tee $one (i32.add (local.get $one) (i32.const 16))) (i32.const 224))))
    (call $tell (global.get $hash)))
  (func (export "_start")
    (local $operation i32)
    (loop $next
      (call $try (local.get $operation))
      (br_if $next (i32.lt_u (local.tee $operation (i32.add (local.get $operation) (i32.const 1))) (i32.const 20)))))
)
