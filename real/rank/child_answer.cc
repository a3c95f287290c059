#include "real/rank/child_answer.h"

#include <algorithm>
#include <cstdlib>

#include <poll.h>
#include <unistd.h>

#include "real/rank/process.h"

namespace rollcall::real {

ChildAnswer ask_child(const std::function<std::string()>& question, Duration limit) {
  Pipe pipe;
  ChildProcess child([&]() noexcept {  // an error ends the child with its message, and goes no further up
    const std::string text = question();
    const bool told =
        ::write(pipe.write.number(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
    ::_exit(told ? EXIT_SUCCESS : EXIT_FAILURE);
  });
  pipe.write.close();
  ChildAnswer answer;
  char bytes[4096];
  pollfd ready{pipe.read.number(), POLLIN, 0};
  for (ssize_t count = 1; count != 0;) {
    if (::poll(&ready, 1, limit > 0 ? static_cast<int>(limit / millisecond) : -1) == 0) {
      answer.is_late = true;
      child.kill();
      return answer;
    }
    count =
        ::read(pipe.read.number(), bytes, sizeof bytes);  // fails only when a signal came, and again succeeds
    answer.text.append(bytes, static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  }
  answer.status = child.wait();
  return answer;
}

}  // namespace rollcall::real
