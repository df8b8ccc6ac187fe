// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "pkg/base/status.h"

namespace resmgr::docker {

// A request that is looked at: the proxy holds all of it, and then its reply, until it is told what
// to do with them. Destroyed without a reply where none comes or the client is gone. Loop's thread
// only.
class Interception {
 public:
  // The proxy. Each of the three may be called from within what they answer, or later.
  class Client {
   public:
    // Answers OnRequest. nullopt: the request passes as it came.
    virtual void Forward(std::optional<std::string> body) = 0;
    virtual void Reject(const Status& why) = 0;
    // Answers OnReply. Not OK: the client gets this error in place of the reply.
    virtual void PassReply(const Status& error) = 0;

   protected:
    ~Client() = default;
  };

  virtual ~Interception() = default;

  // The whole body, without chunks. A view that holds until the answer.
  virtual void OnRequest(std::string_view body) = 0;
  // After Forward: dockerd cannot be reached.
  virtual void OnNotForwarded() = 0;
  // dockerd's reply; the body is empty where it is larger than what is held.
  virtual void OnReply(int status, std::string_view body) = 0;
};

// Chooses which requests are looked at.
class Interceptor {
 public:
  virtual ~Interceptor() = default;
  // nullptr: the request passes. The client outlives what is returned.
  virtual std::unique_ptr<Interception> Begin(std::string_view method, std::string_view target,
                                              Interception::Client& client) = 0;
};

}  // namespace resmgr::docker
