// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace resmgr::webhook {

struct ServerLimits {
  // An API server takes objects up to 3 MiB, etcd stores up to 1.5 MiB of them, and an update has
  // two.
  size_t body = size_t{4} << 20;
  size_t header = size_t{16} << 10;
  // At this limit a new connection closes the least useful one (standing.h).
  size_t connections = 128;
  // Bytes of all bodies that are being read. A body that needs more room closes the session whose
  // body has been read for the longest time.
  size_t bodies = size_t{24} << 20;
  // Time from the connection, or from an answer, to the next request's header, before a review has
  // been answered on the connection.
  std::chrono::milliseconds first_request{10'000};
  // The same time after a review was answered. Longer than API servers keep idle connections (90
  // s), so that they close them and never send into a connection that was just closed.
  std::chrono::milliseconds idle{120'000};
  // Time from the header to the body's last byte, and for the client to take the answer.
  std::chrono::milliseconds body_time{10'000};
  // Time for the answers under way when the server ends.
  std::chrono::milliseconds grace{5'000};
  // The period at which the certificate's files are checked.
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
