"""`make bench`: what can be timed on a machine with no GPU."""

import compile_time
import executors
import simulator

if __name__ == "__main__":
    compile_time.main()
    executors.main()
    simulator.main()
