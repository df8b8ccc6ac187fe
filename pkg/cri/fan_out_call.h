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

// One client's call that goes to several runtimes, and whose replies become one: for a unary call
// the concatenation of the replies' messages, which merges protobuf's repeated fields, once all
// have arrived; for a stream the messages as they come. The result is complete or an error: if one
// runtime cannot be asked or fails, the client gets that runtime's name and status instead of the
// others' entries.
//
// A runtime that has not answered within the patience, if there is one, has failed, and so has the
// call: kUnavailable. In a stream, each runtime has to send something within the patience, unless
// the stream is endless.
//
// With a Merge function every runtime's outcome counts, also a failure, and the function computes
// the result; a runtime that has not answered counts as kUnavailable. Loop's thread only.
class FanOutCall {
 public:
  // Bytes of one message of a streamed reply.
  static constexpr size_t kMostOfMessage = size_t{16} * 1024 * 1024;
  // Bytes that wait for the client; above this the runtimes stop at their windows.
  static constexpr size_t kMostWaiting = size_t{256} * 1024;
  // Far less than the kubelet's two minutes.
  static constexpr std::chrono::seconds kPatience{10};

  // The caller. Each function may destroy the FanOutCall.
  class Client {
   public:
    // Counts kept bytes. False: the call is over.
    virtual bool HoldReply(size_t bytes) = 0;
    // For a unary call without a Merge function, when all replies have arrived: the messages of the
    // runtimes, which may be changed.
    virtual void OnReplies(std::vector<h2::SliceQueue>& messages) = 0;
    // Passes one whole message for the client, gRPC's prefix included. False: the call is over.
    virtual bool OnMessage(const h2::SliceQueue& message) = 0;
    // Called last, with the first error.
    virtual void OnFanOutEnd(const Status& status) = 0;

   protected:
    ~Client() = default;
  };

  // Gets the replies in the order of the runtimes.
  using Merge = std::function<StatusOr<std::string>(const std::vector<RuntimeReply>&)>;
  struct Options {
    bool streams = false;  // replies are streams of messages
    bool endless = false;  // streams have no end, and may be silent
    Merge merge{};         // only for unary calls
    // Returns the part of a streamed message that the client gets; nullopt: all of it, "": nothing.
    // The function may be empty.
    std::function<std::optional<std::string>(size_t runtime, std::string_view message)> edit{};
    // Called when a runtime's part of the call ends, with its position. Parts that are open when
    // the whole call ends have failed, except where another runtime's failure ends it.
    std::function<void(size_t runtime, bool ok)> ended{};
    // With a Merge function: whether the runtime hangs, so that the call does not wait for it. May
    // be empty.
    std::function<bool(size_t runtime)> hangs{};
    // With `hangs`: called once for each runtime that has not answered after a tenth of a second.
    // May be empty.
    std::function<void(size_t runtime)> silent{};
    // nullopt: only for calls with a Merge function, as long as the client waits.
    std::optional<std::chrono::milliseconds> patience{};
  };

  FanOutCall(EventLoop& loop, Client& client, Options options);
  ~FanOutCall();
  FanOutCall(const FanOutCall&) = delete;
  FanOutCall& operator=(const FanOutCall&) = delete;

  // Sends the request to one more runtime; `session` is an error if it cannot be reached. Its reply
  // must be uncompressed, so no compression is accepted. Not OK: the call has failed, which is not
  // reported to the client here.
  Status Add(std::string_view name, const StatusOr<h2::Session*>& session,
             const h2::HeaderBlock& headers, const h2::SliceQueue& body);
  // Adds a runtime that is not asked: its reply is empty, or it has failed. Requires a Merge
  // function.
  void AddSettled(std::string_view name, const Status& status);
  // Called when the request was sent to all of them. May end and destroy the call.
  void AllAdded();
  // Called when bytes have left for the client, with the number of those that still wait.
  void OnSent(size_t waiting);

 private:
  class Branch;

  void NoteEnd(const Branch& branch, bool ok);
  void OnBranchDone();
  void StartPatience();
  void OnPatienceOver();
  // Ends the call if a runtime was silent for the patience.
  void EndForSilence();
  // Ends the call because of this runtime.
  void EndByBranch(const Branch& branch, const Status& why);
  void TellSilent();
  void GiveUpHanging();
  void GiveUp(Branch& branch, const Status& why);
  Status Silence() const;
  void EndMerged();
  void EndConcatenated();

  EventLoop& loop_;
  Client& client_;
  const Options options_;
  bool all_added_ = false;
  bool failed_ = false;  // one runtime's failure has ended the call
  EventLoop::HandlePtr patience_;
  EventLoop::HandlePtr look_;  // periodic check
  bool told_silent_ = false;
  size_t waiting_ = 0;
  std::vector<std::unique_ptr<Branch>> branches_;
  size_t done_ = 0;
};

}  // namespace resmgr
