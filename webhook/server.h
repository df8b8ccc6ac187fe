// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "pkg/base/status.h"
#include "webhook/server_options.h"

namespace resmgr::webhook {

// The HTTPS server around ReviewAdmission (review.h): POST / and /mutate take reviews, GET /healthz
// answers "ok". HTTP/1.1, many connections, one thread: the caller of Run. Whatever clients do, it
// stays within its limits and goes on serving the others: at a limit, the least useful connection
// is closed; a new one is never refused. A renewed certificate is loaded automatically, and with
// SIGHUP at once; a bad one is reported and the old one kept.
class Server {
 public:
  // Loads the certificate and binds the port. kUnavailable when either fails; kInvalidArgument for
  // a malformed address.
  static StatusOr<std::unique_ptr<Server>> Create(ServerOptions options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // From now on SIGTERM and SIGINT stop the server and SIGHUP reloads the certificate. Called
  // before Run, for at most one server of the process.
  void HandleSignals();

  // Serves until Stop. kInternal for a bug of the server.
  Status Run();

  // Stops accepting, lets answers that are under way finish, and ends Run. Thread-safe.
  void Stop();

  // The port that it listens on.
  uint16_t port() const;

 private:
  class Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace resmgr::webhook
