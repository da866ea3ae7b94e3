;; Warns 5,000 times, then ends well.
(data (i32.const 4096) "a.json[1]odd")
(func $run (result i32)
  (local $left i32)
  (local.set $left (i32.const 5000))
  (loop $again
    (call $warn (i32.const 4096) (i32.const 9) (i32.const 4105) (i32.const 3))
    (br_if $again (local.tee $left (i32.sub (local.get $left) (i32.const 1)))))
  (global.get $ok))
