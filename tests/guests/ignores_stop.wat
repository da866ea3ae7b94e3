;; Emits endlessly and ignores the verdict.
(data (i32.const 4096) "a.json[0]no reason")
(func $run (result i32)
  (loop $again
    (drop (call $skip (i32.const 0) (i32.const 4096) (i32.const 9) (i32.const 4105) (i32.const 9)))
    (br $again))
  (unreachable))
