// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "agent/cluster_access.h"
#include "agent/http.h"
#include "pkg/base/status.h"
#include "pkg/sys/event_loop.h"

namespace resmgr::agent {

// HTTPS (or HTTP) to one API server through libcurl, on the event loop; the only thread is the one
// in which libcurl looks up a name. HTTP/1.1, so that each watch has its own connection and a lost
// one stops nothing else. A connection whose peer has vanished is noticed within a minute.
class CurlTransport : public HttpTransport {
 public:
  // The loop must outlive this object, and this object its calls. kInternal: no libcurl.
  static StatusOr<std::unique_ptr<CurlTransport>> Create(EventLoop& loop, ClusterAccess access);
  ~CurlTransport() override;

  std::unique_ptr<Call> Send(HttpRequest request, Data data, Done done) override;

 private:
  class Impl;
  explicit CurlTransport(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace resmgr::agent
