// The views of a running job: the terminal's last row, and a page on loopback.

#include <cstdlib>

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "scenarios/watch/live_page.h"
#include "scenarios/watch/network.h"
#include "scenarios/watch/status_row.h"
#include "tests/catch.h"

namespace rollcall::watch::live_view_test {
namespace {

// A terminal of 24 rows and 40 columns, and its output.
class Terminal {
 public:
  Terminal() : reader_(::posix_openpt(O_RDWR | O_NOCTTY)) {
    REQUIRE(reader_.is_open());
    REQUIRE(::grantpt(reader_.number()) == 0);
    REQUIRE(::unlockpt(reader_.number()) == 0);
    terminal_ = real::Descriptor(::open(::ptsname(reader_.number()), O_RDWR | O_NOCTTY));
    REQUIRE(terminal_.is_open());
    const winsize size = {24, 40, 0, 0};
    REQUIRE(::ioctl(reader_.number(), TIOCSWINSZ, &size) == 0);
  }
  int number() const { return terminal_.number(); }
  // What has been written to it, up to `last`: the kernel hands it over in portions.
  std::string written(const std::string& last) const {
    std::string text;
    while (text.find(last) == std::string::npos) {
      char bytes[4096];
      const ssize_t count = ::read(reader_.number(), bytes, sizeof bytes);
      REQUIRE(count > 0);
      text.append(bytes, static_cast<std::size_t>(count));
    }
    return text;
  }

 private:
  real::Descriptor reader_;
  real::Descriptor terminal_;
};

Address address_of(const LivePage& page) {
  const std::string url = page.url();
  return {"127.0.0.1", static_cast<std::uint16_t>(std::stoi(url.substr(url.find(':', 5) + 1)))};
}

// Returns what a browser gets for this request; the status if it is refused.
std::string asked(LivePage& page, const std::string& path, const std::string& host = "127.0.0.1") {
  real::Pipe answer;
  real::ChildProcess browser([&] {
    std::string text;
    try {
      text =
          ask_server(address_of(page), "GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n", 5 * second);
    } catch (const NoAnswer& problem) {
      text = problem.what();
    }
    ::_exit(::write(answer.write.number(), text.data(), text.size()) == static_cast<ssize_t>(text.size())
                ? 0
                : 1);
  });
  answer.write.close();
  const real::Descriptor end = browser.watch();
  for (bool is_over = false; !is_over;) {
    std::vector<pollfd> polled = {{end.number(), POLLIN, 0}};
    page.watch(polled);
    ::poll(polled.data(), polled.size(), 1000);
    page.serve();
    is_over = polled.front().revents != 0;
  }
  CHECK(browser.wait() == 0);
  char bytes[4096];
  const ssize_t count = ::read(answer.read.number(), bytes, sizeof bytes);
  return {bytes, count > 0 ? static_cast<std::size_t>(count) : 0};
}

std::string path_of(const LivePage& page) { return page.url().substr(page.url().rfind('/')); }

}  // namespace

TEST_CASE("the last row of a terminal is kept for one line, and given back", "[watch]") {
  ::setenv("TERM", "xterm", 1);
  const Terminal terminal;
  REQUIRE(StatusRow::is_possible(terminal.number()));
  {
    StatusRow row(terminal.number());
    row.draw("a line that is longer than forty columns are, so that its end is cut off");
    const std::string drawn = terminal.written("\033[0m\0338");
    CHECK_THAT(drawn, Contains("\033[1;23r"));
    CHECK_THAT(drawn, Contains("\033[24;1H"));
    CHECK_THAT(drawn, Contains("a line that is longer than forty columns"));
    CHECK_THAT(drawn, !Contains("columns are"));
  }
  CHECK_THAT(terminal.written("\033[r\0338"), Contains("\033[24;1H\033[2K\033[r"));
}

TEST_CASE("what is not a terminal has no row", "[watch]") {
  const real::Pipe pipe;
  CHECK_FALSE(StatusRow::is_possible(pipe.write.number()));
  ::setenv("TERM", "dumb", 1);
  const Terminal terminal;
  CHECK_FALSE(StatusRow::is_possible(terminal.number()));
}

TEST_CASE("the page of a job is there for who knows its address, on this machine", "[watch]") {
  LivePage page(0, [] { return std::string("<p>rank 2 is last"); });
  CHECK_THAT(page.url(), StartsWith("http://127.0.0.1:"));
  const std::string answer = asked(page, path_of(page));
  CHECK_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  CHECK_THAT(answer, EndsWith("<p>rank 2 is last"));
  CHECK_THAT(asked(page, path_of(page), "localhost:9000"), StartsWith("HTTP/1.1 200 OK\r\n"));
}

TEST_CASE("the page is refused to who guesses, and to pages of other hosts", "[watch]") {
  LivePage page(0, [] { return std::string("a secret"); });
  for (const std::string& answer :
       {asked(page, "/"), asked(page, path_of(page) + "0"), asked(page, path_of(page), "evil.example"),
        asked(page, path_of(page), "localhost.evil.example")}) {
    CHECK_THAT(answer, StartsWith("HTTP/1.1 404 Not Found\r\n"));
    CHECK_THAT(answer, !Contains("a secret"));
  }
}

TEST_CASE("a page that cannot be made says why, and the next one is tried again", "[watch]") {
  LivePage page(0, []() -> std::string { throw std::runtime_error("no rings there"); });
  for (int turn = 0; turn < 6; ++turn) {  // more than are answered at a time
    const std::string answer = asked(page, path_of(page));
    CHECK_THAT(answer, StartsWith("HTTP/1.1 500 "));
    CHECK_THAT(answer, EndsWith("no rings there"));
  }
}

TEST_CASE("those who ask or read too slowly lose their place, and the next one gets the page", "[watch]") {
  LivePage page(0, [] { return std::string(std::size_t{64} << 20U, 'x'); }, {1, 1});
  const std::string question =
      GENERATE(std::string("GET /"), std::string());  // half a request; or a whole one, unread
  std::vector<real::Descriptor> strangers;
  for (int stranger = 0; stranger < 4; ++stranger) {  // as many as are answered at a time
    strangers.push_back(connect_to_server(address_of(page), second));
    const std::string bytes =
        question.empty() ? "GET " + path_of(page) + " HTTP/1.1\r\nHost: localhost\r\n\r\n" : question;
    REQUIRE(::send(strangers.back().number(), bytes.data(), bytes.size(), 0) ==
            static_cast<ssize_t>(bytes.size()));
    page.serve();
  }
  CHECK_THAT(asked(page, "/"), StartsWith("HTTP/1.1 404 Not Found\r\n"));
}

}  // namespace rollcall::watch::live_view_test
