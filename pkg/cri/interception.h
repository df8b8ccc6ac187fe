// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>

#include "pkg/base/status.h"
#include "pkg/cri/method_table.h"
#include "pkg/grpc/grpc_message.h"

namespace resmgr {

// One call that is read on its way: the request is held until it is decided, the reply is seen
// before the client gets its end. Loop's thread only. Destroyed without OnReply when the outcome
// stays unknown: the client went away or the connection to the runtime broke.
class Interception {
 public:
  struct Verdict {
    Status refusal;  // not OK: the client gets this and the runtime is not asked
    // Appended to the message; empty forwards its bytes untouched. Valid until OnVerdict returns.
    std::string_view suffix;
  };
  // Who asks for it; outlives the interception.
  class Asker {
   public:
    // May destroy the interception.
    virtual void OnVerdict(const Verdict& verdict) = 0;

   protected:
    ~Asker() = default;
  };

  virtual ~Interception() = default;

  // Gives its verdict once, at once or later, and never after the destructor. `message` lives until
  // then.
  virtual void OnRequest(std::string_view message, Asker& asker) = 0;
  // Whether OnReply looks at the message.
  virtual bool ReadsReply() const { return false; }
  // How the runtime answered; `message` is empty when it failed or was not read.
  virtual void OnReply(const GrpcStatus& status, std::string_view message) = 0;
};

// Decides which calls are read. Outlives its interceptions.
class Interceptor {
 public:
  virtual ~Interceptor() = default;
  // Null: the call passes through.
  virtual std::unique_ptr<Interception> Begin(const Method& method) = 0;
};

}  // namespace resmgr
