// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/h2/bytes.h"
#include "pkg/h2/header_block.h"
#include "pkg/h2/session.h"

namespace resmgr {

// One client's call that goes to several runtimes, and whose replies become one: of a unary call
// the concatenation of the replies' messages, which merges protobuf's repeated fields, once all are
// here; of a stream (kEach) the messages as they come. Complete or an error: where one runtime
// cannot be asked or fails, the client gets that runtime's name and status and not the others'
// entries. Loop's thread only.
class FanOutCall {
 public:
  // Of one message of a reply that is a stream.
  static constexpr size_t kMostOfMessage = size_t{16} * 1024 * 1024;
  // Bytes that wait for the client; the runtimes stop at their windows then.
  static constexpr size_t kMostWaiting = size_t{256} * 1024;

  // The caller. Each of these may destroy the FanOutCall.
  class Client {
   public:
    // Accounts for bytes that are kept. False: the call is over.
    virtual bool HoldReply(size_t bytes) = 0;
    // Of a unary call whose replies are all here: the message of each runtime alone.
    virtual void OnReplies(const std::vector<h2::SliceQueue>& messages) = 0;
    // One whole message for the client, gRPC's prefix included. False: the call is over.
    virtual bool OnMessage(const h2::SliceQueue& message) = 0;
    // The last call; with the first error.
    virtual void OnFanOutEnd(const Status& status) = 0;

   protected:
    ~Client() = default;
  };

  // `streams`: the replies are streams of messages.
  FanOutCall(Client& client, bool streams);
  ~FanOutCall();
  FanOutCall(const FanOutCall&) = delete;
  FanOutCall& operator=(const FanOutCall&) = delete;

  // Sends the request to one more runtime. Its reply has to be uncompressed, so none other is
  // asked for. False: the session takes no calls any more.
  bool Add(std::string_view name, h2::Session& session, const h2::HeaderBlock& headers,
           const h2::SliceQueue& body);
  // `waiting` bytes for the client are left.
  void OnSent(size_t waiting);

 private:
  class Branch;

  void OnBranchDone();

  Client& client_;
  const bool streams_;
  size_t waiting_ = 0;
  std::vector<std::unique_ptr<Branch>> branches_;
  size_t done_ = 0;
};

}  // namespace resmgr
