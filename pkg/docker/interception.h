// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "pkg/base/status.h"

namespace resmgr::docker {

// One intercepted request: the proxy holds all of it, and then all of its reply, until the
// interception decides. Destroyed without a reply if none comes or the client is gone. Loop's
// thread only.
class Interception {
 public:
  // The proxy's side. Each function may be called from within the call that it answers, or later.
  class Client {
   public:
    // Answers OnRequest. nullopt: the request passes unchanged.
    virtual void Forward(std::optional<std::string> body) = 0;
    virtual void Reject(const Status& why) = 0;
    // Answers OnReply. Not OK: the client gets this error instead of the reply.
    virtual void PassReply(const Status& error) = 0;

   protected:
    ~Client() = default;
  };

  virtual ~Interception() = default;

  // The whole body, without chunk framing. The view is valid until the answer.
  virtual void OnRequest(std::string_view body) = 0;
  // Follows Forward when dockerd cannot be reached.
  virtual void OnNotForwarded() = 0;
  // dockerd's reply; the body is empty if it is larger than the limit.
  virtual void OnReply(int status, std::string_view body) = 0;
};

// Chooses which requests are intercepted.
class Interceptor {
 public:
  virtual ~Interceptor() = default;
  // nullptr: the request passes. The client outlives the result.
  virtual std::unique_ptr<Interception> Begin(std::string_view method, std::string_view target,
                                              Interception::Client& client) = 0;
};

}  // namespace resmgr::docker
