// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/cri/reply_merge.h"
#include "pkg/h2/bytes.h"
#include "pkg/h2/header_block.h"
#include "pkg/h2/session.h"
#include "pkg/sys/event_loop.h"

namespace resmgr {

// One client's call that goes to several runtimes, and whose replies become one: of a unary call
// the concatenation of the replies' messages, which merges protobuf's repeated fields, once all are
// here; of a stream the messages as they come. Complete or an error: where one runtime cannot be
// asked or fails, the client gets that runtime's name and status and not the others' entries.
//
// A runtime that has not answered when the patience is over has failed, and the call with it:
// Unavailable. In a stream, a runtime has to send something new within the patience, unless the
// stream is an endless one.
//
// With a Merge function every runtime's outcome counts, also a failure, and the function says what
// becomes of them; one that has not answered has failed with Unavailable. Loop's thread only.
class FanOutCall {
 public:
  // Of one message of a reply that is a stream.
  static constexpr size_t kMostOfMessage = size_t{16} * 1024 * 1024;
  // Bytes that wait for the client; the runtimes stop at their windows then.
  static constexpr size_t kMostWaiting = size_t{256} * 1024;
  // Far less than the two minutes of the kubelet.
  static constexpr std::chrono::seconds kPatience{10};

  // The caller. Each of these may destroy the FanOutCall.
  class Client {
   public:
    // Accounts for bytes that are kept. False: the call is over.
    virtual bool HoldReply(size_t bytes) = 0;
    // Of a unary call without a Merge function whose replies are all here: the message of each
    // runtime alone, which may be made another one.
    virtual void OnReplies(std::vector<h2::SliceQueue>& messages) = 0;
    // One whole message for the client, gRPC's prefix included. False: the call is over.
    virtual bool OnMessage(const h2::SliceQueue& message) = 0;
    // The last call; with the first error.
    virtual void OnFanOutEnd(const Status& status) = 0;

   protected:
    ~Client() = default;
  };

  // In the order of the runtimes.
  using Merge = std::function<StatusOr<std::string>(const std::vector<RuntimeReply>&)>;
  struct Options {
    bool streams = false;  // the replies are streams of messages
    bool endless = false;  // which have no end, and may be silent
    Merge merge{};         // only where they are not
    // The part of a stream's message that the client gets; nullopt: all, "": nothing. May be empty.
    std::function<std::optional<std::string>(size_t runtime, std::string_view message)> edit{};
    // Told of each runtime's end, by its position, but not of those that are given up.
    std::function<void(size_t runtime, bool ok)> ended{};
    // With a Merge function: whether the runtime hangs, so that the call does not wait for it. May
    // be empty.
    std::function<bool(size_t runtime)> hangs{};
    // With `hangs`: told once of each runtime that has not answered after a tenth of a second. May
    // be empty.
    std::function<void(size_t runtime)> silent{};
    std::chrono::milliseconds patience = kPatience;
  };

  FanOutCall(EventLoop& loop, Client& client, Options options);
  ~FanOutCall();
  FanOutCall(const FanOutCall&) = delete;
  FanOutCall& operator=(const FanOutCall&) = delete;

  // Sends the request to one more runtime, whose session is no error where it can be reached. Its
  // reply has to be uncompressed, so none other is asked for. Not OK: the call has failed, and the
  // client is not told of it here.
  Status Add(std::string_view name, const StatusOr<h2::Session*>& session,
             const h2::HeaderBlock& headers, const h2::SliceQueue& body);
  // One more that is not asked: its reply is an empty one, or it has failed. With a Merge function.
  void AddSettled(std::string_view name, const Status& status);
  // The request was sent to all of them. May be the end of the call.
  void AllAdded();
  // `waiting` bytes for the client are left.
  void OnSent(size_t waiting);

 private:
  class Branch;

  void NoteEnd(const Branch& branch, bool ok);
  void OnBranchDone();
  void StartPatience();
  void OnPatienceOver();
  // Whether a runtime was silent for the patience. True: the call is over.
  bool EndForSilence();
  void TellSilent();
  void GiveUpHanging();
  void GiveUp(Branch& branch);
  Status Silence() const;
  void EndMerged();
  void EndConcatenated();

  EventLoop& loop_;
  Client& client_;
  const Options options_;
  bool all_added_ = false;
  EventLoop::HandlePtr patience_;
  EventLoop::HandlePtr look_;  // now and then
  bool told_silent_ = false;
  size_t waiting_ = 0;
  std::vector<std::unique_ptr<Branch>> branches_;
  size_t done_ = 0;
};

}  // namespace resmgr
