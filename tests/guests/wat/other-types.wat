(component
  ;; Asks for a function of WASI's by other types than it has.
  (import "wasi:random/random@0.2.0" (instance $random
    (export "get-random-bytes" (func (param "len" string) (result f64)))))
  (core module $m (func (export "run") (result i32) (i32.const 0)))
  (core instance $i (instantiate $m))
  (func $run (result (result)) (canon lift (core func $i "run")))
  (instance $out (export "run" (func $run)))
  (export "wasi:cli/run@0.2.0" (instance $out))
)
