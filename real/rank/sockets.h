#pragma once

// TCP, as far as launched runs need it. All functions throw std::runtime_error with the address and the reason; if this
// end lacks a resource, std::system_error.

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <sys/socket.h>

#include "real/process/process.h"

namespace rollcall::real {

// Waits up to a minute for a listener there: ranks start in any order.
Descriptor connect_to(const std::string& address, std::uint16_t port);
// Listens at that address only. Neither this nor accept_from blocks.
Descriptor listen_at(const std::string& address, std::uint16_t port);
// The same, but at all addresses if the address is not this machine's, like that of a forwarding service.
Descriptor listen_on(const std::string& address, std::uint16_t port);
// Closed if no connection is waiting.
Descriptor accept_from(const Descriptor& listener);

// Two ends of one connection inside this machine. Throws std::system_error.
std::pair<Descriptor, Descriptor> connected_pair();

// 0 if it is not a TCP address.
std::uint16_t port_of(const sockaddr_storage& address);
// The port of this end of a connection, or of a listener.
std::uint16_t own_port(const Descriptor& socket);
// The address of this end of a connection, as digits: one that the other end's machine can reach.
std::string local_address(const Descriptor& connection);

// True if errno `error` is caused by the other end, or by the network in between.
bool is_disconnection(int error);

// Nobody is reached: the address does not resolve, another process listens there, or the other end is gone.
struct Disconnected : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// Throws Disconnected if the other end no longer receives.
void send_all(const Descriptor& connection, std::string_view bytes);
// Blocks until data arrives. Empty if the other end has closed, or is lost.
std::string receive_some(const Descriptor& connection);

// The two that follow throw std::system_error for errors that neither the other end nor the network causes.
// Appends the data that is there, up to about `bytes_max` of it in all. False if the other end has closed, or is lost.
bool receive_available(const Descriptor& connection, std::string& bytes, std::size_t bytes_max);
// Sends few bytes, for which there is always room; false if there is none, because the other end does not read.
bool send_at_once(const Descriptor& connection, std::string_view bytes);

}  // namespace rollcall::real
