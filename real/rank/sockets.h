#pragma once

// TCP, as much as launched runs need. Everything throws std::runtime_error with the address and the reason; where it is
// this end that cannot go on, a std::system_error.

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <sys/socket.h>

#include "real/process/process.h"

namespace rollcall::real {

// Waits up to a minute for somebody to listen there: ranks start in any order.
Descriptor connect_to(const std::string& address, std::uint16_t port);
// At that address and nowhere else. Neither this nor accept_from blocks. Throws std::system_error.
Descriptor listen_at(const std::string& address, std::uint16_t port);
// The same; at all addresses where it is somebody else's, as that of a service that forwards is.
Descriptor listen_on(const std::string& address, std::uint16_t port);
// Closed when nobody waits.
Descriptor accept_from(const Descriptor& listener);

// Two ends of one connection inside this machine. Throws std::system_error.
std::pair<Descriptor, Descriptor> connected_pair();

// 0: it is not one of TCP.
std::uint16_t port_of(const sockaddr_storage& address);
// Of this end of a connection, or of a listener.
std::uint16_t own_port(const Descriptor& socket);
// The address of this end of a connection, as digits: one that the other end's machine can reach.
std::string local_address(const Descriptor& connection);

// What errno says is the other end's doing, or the network's between the two.
bool is_disconnection(int error);

struct Disconnected : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// Throws Disconnected when nobody receives any more.
void send_all(const Descriptor& connection, std::string_view bytes);
// Blocks until there is something. Empty: the other end has closed, or is lost.
std::string receive_some(const Descriptor& connection);

}  // namespace rollcall::real
