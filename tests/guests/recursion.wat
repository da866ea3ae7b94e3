;; Calls itself without end.
(func $deeper (param $depth i64) (result i64)
  (i64.add (call $deeper (i64.add (local.get $depth) (i64.const 1))) (local.get $depth)))
(func $run (result i32)
  (drop (call $deeper (i64.const 0)))
  (global.get $ok))
