// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "pkg/base/status.h"

namespace resmgr::webhook {

struct ServerLimits {
  // An API server takes objects up to 3 MiB, etcd stores up to 1.5 MiB of them, and an update has
  // two.
  size_t body = size_t{4} << 20;
  size_t header = size_t{16} << 10;
  // At this limit a new connection closes the least useful one (LessUseful).
  size_t connections = 128;
  // Bytes that the bodies being read may take together. If a body needs more, the session whose
  // body has been read for the longest time is closed.
  size_t bodies = size_t{24} << 20;
  // Time from the connection, or from an answer, to the next request's header, before a review has
  // been answered on the connection.
  std::chrono::milliseconds first_request{10'000};
  // The same time once a review was answered. API servers close idle connections after 90 s; a
  // longer time here makes sure that they do so first, and never send into a connection that was
  // just closed.
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
  // Time for which the server goes on after SIGTERM. Kubernetes sends SIGTERM and takes the pod out
  // of the Service at the same time, so API servers open connections for some seconds after it.
  std::chrono::milliseconds shutdown_delay{0};
  ServerLimits limits{};
};

// The HTTPS server around ReviewAdmission (review.h): POST / and /mutate take reviews, GET /healthz
// answers "ok" until the server is about to end. HTTP/1.1, many connections, one thread: the caller
// of Run. Whatever clients do, it stays within its limits and goes on serving the others: at a
// limit, the least useful connection is closed; a new one is never refused. A renewed certificate
// is loaded automatically, and with SIGHUP at once; a bad one is reported and the old one kept.
class Server {
 public:
  // Loads the certificate and binds the port. kUnavailable when either fails; kInvalidArgument for
  // a malformed address.
  static StatusOr<std::unique_ptr<Server>> Create(ServerOptions options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // From now on SIGINT stops the server, SIGTERM does so after the delay, a second one at once, and
  // SIGHUP reloads the certificate. Called before Run, for at most one server of the process.
  void HandleSignals();

  // Serves until Stop. kInternal for a bug of the server.
  Status Run();

  // Stops accepting, lets answers that are under way finish, and ends Run. Thread-safe.
  void Stop();

  // The port on which the server listens.
  uint16_t port() const;

 private:
  class Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace resmgr::webhook
