// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace resmgr::webhook {

struct ServerLimits {
  // An API server takes objects up to 3 MiB, of which etcd stores 1.5, and an update has two.
  size_t body = size_t{4} << 20;
  size_t header = size_t{16} << 10;
  // When one more comes, the one that has been of the least use is closed (standing.h).
  size_t connections = 128;
  // Of the bodies that are being read, together. When one more needs room, the one that has been
  // read for the longest time is closed.
  size_t bodies = size_t{24} << 20;
  // From the connection, or from an answer, to the next request's header, until a review has been
  // answered on the connection.
  std::chrono::milliseconds first_request{10'000};
  // From an answer to the next request's header after that. Longer than API servers keep idle
  // connections (90 s), so that they close them and never send into a connection that just went.
  std::chrono::milliseconds idle{120'000};
  // From the header to the last byte of the body, and for the answer to be taken.
  std::chrono::milliseconds body_time{10'000};
  // For the answers under way when the server ends.
  std::chrono::milliseconds grace{5'000};
  // How often the certificate's files are looked at.
  std::chrono::milliseconds reload{2'000};
};

struct ServerOptions {
  // An IP address; empty for all, IPv6 and IPv4.
  std::string address{};
  uint16_t port = 443;  // 0: any free one
  std::string certificate_file{};
  std::string key_file{};
  ServerLimits limits{};
};

}  // namespace resmgr::webhook
