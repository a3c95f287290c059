#pragma once

// Proof of knowing a secret without sending it: HMAC-SHA-256 (RFC 2104, FIPS 180-4).

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace rollcall::real {

using Sha256 = std::array<std::uint8_t, 32>;

Sha256 sha256(std::string_view bytes);
// Returns the digest as bytes.
std::string hmac_sha256(std::string_view key, std::string_view message);
// Takes as long for a wrong text as for the right one.
bool is_equal(std::string_view a, std::string_view b);
// nonce_bytes bytes that cannot be guessed. Throws std::runtime_error if the system has none.
inline constexpr std::size_t nonce_bytes = 32;
std::string nonce();
// Proves that the side with this role knows the token: an HMAC over the role and both sides' nonces.
std::string proof_of(std::string_view token, std::string_view role, std::string_view first,
                     std::string_view second);

}  // namespace rollcall::real
