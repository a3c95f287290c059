// Supervisors of several nodes, and strangers that connect in their place.

#include "scenarios/watch/nodes.h"

#include <fstream>
#include <string>

#include <sys/socket.h>

#include "real/rank/proof.h"
#include "real/rank/sockets.h"
#include "scenarios/watch/clock.h"
#include "tests/catch.h"
#include "tests/folder.h"

namespace rollcall::watch::nodes_test {
namespace {

using Activity = RankMoment::Activity;

const std::string token = "a secret of sixteen or more";

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) {
    constexpr const char* digits = "0123456789abcdef";
    text += digits[static_cast<unsigned char>(byte) >> 4U];
    text += digits[static_cast<unsigned char>(byte) & 15U];
  }
  return text;
}

std::string hex(const real::Sha256& digest) { return hex(std::string(digest.begin(), digest.end())); }

NodeOptions options(int node, std::uint16_t port, const std::string& secret = token) {
  return {node, {"127.0.0.1", port}, secret};
}

// Serves both sides for a while, or until `done`.
template <typename Done>
bool serve(NodeHub& hub, NodeMember& member, const std::vector<RankMoment>& ranks, const Done& done) {
  for (const Time until = monotonic_now() + 4 * second; monotonic_now() < until;) {
    member.serve(monotonic_now(), ranks);
    hub.serve(monotonic_now());
    if (done()) {
      return true;
    }
  }
  return false;
}

// Sends the bytes, and returns whether the hub has refused the connection.
bool is_refused(NodeHub& hub, const std::string& bytes) {
  const real::Descriptor stranger = connect_to_server({"127.0.0.1", hub.port()}, second);
  const std::size_t before = hub.refused();
  ::send(stranger.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  for (const Time until = monotonic_now() + second; monotonic_now() < until && hub.refused() == before;) {
    hub.serve(monotonic_now());
  }
  return hub.refused() == before + 1;
}

}  // namespace

TEST_CASE("digests are those of FIPS 180-4 and RFC 4231", "[watch]") {
  CHECK(hex(real::sha256("")) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(hex(real::sha256("abc")) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(hex(real::sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")) ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(hex(real::hmac_sha256("Jefe", "what do ya want for nothing?")) ==
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  CHECK(hex(real::hmac_sha256(std::string(131, '\xaa'),
                              "Test Using Larger Than Block-Size Key - Hash Key First")) ==
        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST_CASE("a node that knows the token says how its ranks are, and sends what they left when asked",
          "[watch]") {
  const test::Folder at_hub;
  const test::Folder at_member;
  at_member.write("rank_2.ring", "ring");
  at_member.write("watch.log", "rollcall watch 1\n");
  at_member.write("notes.txt", "private");
  NodeHub hub(options(0, 0), at_hub.path());
  NodeMember member(options(1, hub.port()));
  const std::vector<RankMoment> ranks = {{2, 17, true, false, Activity::quiet},
                                         {3, 5, false, true, Activity::works}};
  REQUIRE(serve(hub, member, ranks, [&] { return hub.moments().size() == 2; }));
  CHECK(hub.connected() == 1);
  CHECK(hub.moments().front().moves == 17);
  CHECK(hub.moments().front().waits);
  CHECK(hub.moments().back().is_starting);
  CHECK(hub.moments().back().activity == Activity::works);
  member.send_evidence(at_member.path());
  CHECK(serve(hub, member, ranks, [&] { return std::filesystem::exists(at_hub.path("node_1.watch.log")); }));
  CHECK(std::filesystem::exists(at_hub.path("rank_2.ring")));
  CHECK_FALSE(std::filesystem::exists(at_hub.path("notes.txt")));
}

TEST_CASE("node 0 asks, and a node hears it", "[watch]") {
  const test::Folder folder;
  NodeHub hub(options(0, 0), folder.path());
  NodeMember member(options(1, hub.port()));
  REQUIRE(serve(hub, member, {}, [&] { return hub.connected() == 1 && member.is_connected(); }));
  hub.collect(10 * millisecond);  // no node answers, and the hub continues
  bool is_asked = false;
  for (const Time until = monotonic_now() + second; !is_asked && monotonic_now() < until;) {
    is_asked = member.serve(monotonic_now(), {});
  }
  CHECK(is_asked);
}

TEST_CASE("strangers are refused and counted, and those who belong to the job are not disturbed", "[watch]") {
  const test::Folder folder;
  NodeHub hub(options(0, 0), folder.path());
  NodeMember member(options(1, hub.port()));
  REQUIRE(serve(hub, member, {}, [&] { return hub.connected() == 1; }));
  CHECK(is_refused(hub, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
  CHECK(is_refused(hub, real::packet(NodeFrame::proof, std::string(68, 'x'))));
  CHECK(is_refused(hub, real::packet(NodeFrame::proof, "short")));
  CHECK(is_refused(hub, real::packet(NodeFrame::moments, "")));
  CHECK(is_refused(hub, real::packet(NodeFrame::file, std::string("rank_0.ring\0x", 13))));
  CHECK(is_refused(hub, std::string("\xff\xff\xff\xff\x06", 5)));  // four gigabytes are to come
  CHECK(is_refused(hub, std::string(1000, '\0')));
  NodeMember impostor(options(2, hub.port(), "another secret, as long"));
  const std::size_t before = hub.refused();
  CHECK(serve(hub, impostor, {}, [&] { return hub.refused() > before; }));
  CHECK_FALSE(impostor.is_connected());
  CHECK(hub.connected() == 1);
}

TEST_CASE("a stranger who says nothing is refused after five seconds", "[watch]") {
  const test::Folder folder;
  NodeHub hub(options(0, 0), folder.path());
  const real::Descriptor stranger = connect_to_server({"127.0.0.1", hub.port()}, second);
  const Time begin = monotonic_now();
  hub.serve(begin);
  hub.serve(begin + 4 * second);
  CHECK(hub.refused() == 0);
  hub.serve(begin + 6 * second);
  CHECK(hub.refused() == 1);
}

TEST_CASE("a stranger who sends a byte now and then gets no more time than one who is silent", "[watch]") {
  const test::Folder folder;
  NodeHub hub(options(0, 0), folder.path());
  const real::Descriptor stranger = connect_to_server({"127.0.0.1", hub.port()}, second);
  const Time begin = monotonic_now();
  hub.serve(begin);
  for (Time later = 0; later <= 6 * second; later += second / 2) {
    ::send(stranger.number(), later == 0 ? "d" : "\0", 1, MSG_NOSIGNAL);  // a frame of a hundred bytes
    hub.serve(begin + later);
    CHECK(hub.refused() == (later > 5 * second ? 1 : 0));
  }
}

TEST_CASE("a hub that does not read costs a node two seconds, and then it is gone", "[watch]") {
  const real::Descriptor listener = real::listen_at("127.0.0.1", 0);
  NodeMember member(options(1, real::own_port(listener)));
  const test::Folder folder;
  // A hub that proves the token, asks for the ranks' recordings and never reads them.
  member.serve(monotonic_now(), {});
  real::Descriptor hub;
  for (const Time until = monotonic_now() + second; !hub.is_open() && monotonic_now() < until;) {
    hub = real::accept_from(listener);
  }
  REQUIRE(hub.is_open());
  const std::string challenge = real::packet(NodeFrame::challenge, std::string(real::nonce_bytes, 'n'));
  REQUIRE(::send(hub.number(), challenge.data(), challenge.size(), 0) ==
          static_cast<ssize_t>(challenge.size()));
  std::string said;
  for (const Time until = monotonic_now() + second; said.size() < 5 + 2 * real::nonce_bytes + 4;) {
    REQUIRE(monotonic_now() < until);
    member.serve(monotonic_now(), {});
    char bytes[256];
    const ssize_t count = ::recv(hub.number(), bytes, sizeof bytes, MSG_DONTWAIT);
    said.append(bytes, count > 0 ? static_cast<std::size_t>(count) : 0);
  }
  const std::string theirs = said.substr(5, real::nonce_bytes);
  const std::string welcome = real::packet(
      NodeFrame::welcome, real::proof_of(token, "hub", theirs, std::string(real::nonce_bytes, 'n')));
  REQUIRE(::send(hub.number(), welcome.data(), welcome.size(), 0) == static_cast<ssize_t>(welcome.size()));
  for (const Time until = monotonic_now() + second; !member.is_connected() && monotonic_now() < until;) {
    member.serve(monotonic_now(), {});
  }
  REQUIRE(member.is_connected());
  folder.write("rank_2.ring", std::string(std::size_t{32} << 20U, 'r'));
  const Time begin = monotonic_now();
  member.send_evidence(folder.path());
  CHECK(monotonic_now() - begin < 10 * second);
  CHECK_FALSE(member.is_connected());
}

TEST_CASE("a node does not believe a hub that cannot prove the token", "[watch]") {
  const test::Folder folder;
  NodeHub hub(options(0, 0, "the wrong secret, as long"), folder.path());
  NodeMember member(options(1, hub.port()));
  CHECK_FALSE(serve(hub, member, {}, [&] { return member.is_connected(); }));
}

TEST_CASE("names of evidence lead nowhere else", "[watch]") {
  for (const char* good : {"rank_0.ring", "rank_12.stack", "rank_3.held", "rank_7.error", "watch.log"}) {
    CHECK(is_name_of_evidence(good));
  }
  for (const char* bad : {"", "rank_.ring", "rank_1.sh", "../rank_1.ring", "rank_1/../../x.ring",
                          "rank_123456789.ring", "/etc/passwd", "rank_1.ring.gz", "watch.log/x"}) {
    CHECK_FALSE(is_name_of_evidence(bad));
  }
}

TEST_CASE("bytes that are not moments are none", "[watch]") {
  const std::vector<RankMoment> ranks = {{1, 2, true, false, Activity::held}};
  const auto again = decode_moments(encode_moments(ranks));
  REQUIRE(again);
  CHECK(again->front().activity == Activity::held);
  CHECK_FALSE(decode_moments("x"));
  std::string wrong = encode_moments(ranks);
  wrong.back() = '\x55';
  CHECK_FALSE(decode_moments(wrong));
  wrong = encode_moments(ranks);
  wrong[3] = '\xff';
  CHECK_FALSE(decode_moments(wrong));
}

}  // namespace rollcall::watch::nodes_test
