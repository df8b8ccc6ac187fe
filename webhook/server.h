// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "pkg/base/status.h"
#include "webhook/server_options.h"

namespace resmgr::webhook {

// The HTTPS server around ReviewAdmission (review.h): POST / and /mutate take reviews, GET /healthz
// says "ok". HTTP/1.1, many connections, one thread: the one that calls Run. Whatever clients do,
// it holds no more than the limits allow and goes on serving the others: at a limit, the connection
// that has been of the least use is closed, never the new one refused. A renewed certificate is
// taken up by itself, and with SIGHUP at once; one that is no good is reported and the old one
// kept.
class Server {
 public:
  // Loads the certificate and binds the port. Unavailable when either is impossible;
  // InvalidArgument for an address that is none.
  static StatusOr<std::unique_ptr<Server>> Create(ServerOptions options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // From now on SIGTERM and SIGINT stop the server and SIGHUP reloads the certificate. To be called
  // before Run, and for one server of the process at most.
  void HandleSignals();

  // Serves until Stop. Internal for a bug of ours.
  Status Run();

  // Accepts nothing more, lets answers that are under way leave, and ends Run. Thread-safe.
  void Stop();

  // The one that it listens on.
  uint16_t port() const;

 private:
  class Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace resmgr::webhook
