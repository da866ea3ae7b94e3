;; Works and works.
(func $run (result i32)
  (loop $again (br $again))
  (unreachable))
