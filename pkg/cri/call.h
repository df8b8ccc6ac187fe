// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <string_view>
#include <vector>

#include "pkg/base/recycled.h"
#include "pkg/cri/backend_router.h"
#include "pkg/cri/call_observers.h"
#include "pkg/cri/event_stream.h"
#include "pkg/cri/fan_out_call.h"
#include "pkg/cri/handler_aliases.h"
#include "pkg/cri/method_table.h"
#include "pkg/grpc/grpc_message.h"
#include "pkg/h2/stream.h"
#include "pkg/pipeline/pipeline_call.h"

namespace resmgr {

class Connection;

// One call from a client, joined to a stream towards a runtime. Bytes from one side are queued on
// the other, and the receiving window is opened again only when they have left, so memory stays
// within the windows. A call that stages need holds its (single) request message until they have
// decided; its reply is read while it passes, and its end waits for them.
//
// Ends, and is destroyed by its Connection, when the streams of both sides are closed.
class Call final : public h2::StreamHandler,
                   private PipelineCall::Front,
                   private FanOutCall::Client,
                   public Recycled<Call> {
 public:
  Call(Connection& connection, std::unique_ptr<h2::Stream> client, h2::HeaderBlock headers);
  ~Call() override;

  // The call's position in its Connection.
  void set_position(size_t position) { position_ = position; }
  size_t position() const { return position_; }

  const Method& method() const { return method_; }

  // Routes and forwards the request, or answers it. `end`: the request has no body. May end the
  // call and destroy it.
  void Start(bool end);
  // Answers the client from here and gives up the runtime's stream.
  void Finish(const Status& status);
  // Ends the call in favour of others: RESOURCE_EXHAUSTED, and its memory is released.
  void EndForMemory(std::string_view why);
  // Bytes kept for the call, header fields included.
  size_t held() const { return held_; }
  // Continues to decompress the request, for at most `most` bytes. True: it must be called again.
  bool Unpack(size_t most);

  void OnHeaders(h2::Stream& stream, const h2::HeaderBlock& headers, bool end) override;
  void OnData(h2::Stream& stream, const h2::Slice& data) override;
  void OnEnd(h2::Stream& stream, const h2::HeaderBlock& trailers) override;
  void OnSent(h2::Stream& stream, size_t count) override;
  void OnClose(h2::Stream& stream, uint32_t error_code) override;

 private:
  // Members that only calls with stages have.
  struct Reading;
  // A reply of one runtime whose messages are rewritten.
  struct Rewriting;

  bool FromClient(const h2::Stream& stream) const { return &stream == client_.get(); }
  // Whether stages see the call now.
  bool LookedAt() const;
  // Called when no stage sees the call any more.
  void EndPipeline();
  // Ends what takes part in the call beside the two streams.
  void EndParts();
  // Notes that bytes of the reply were queued for the client.
  void NoteQueued() {
    if (events_ != nullptr) events_->OnQueued(client_->queued());
  }
  // Ends a client of events that is behind: RESOURCE_EXHAUSTED.
  void EndListener();
  // Ends the call with this status and without the bytes that the client has not taken.
  void EndAtOnce(const Status& status);
  // Releases everything that is needed only to forward the call.
  void GiveUp();
  // Whether the reply's messages are rewritten: handlers have aliases, or the client must see the
  // numbers that it requested. Known once the call is forwarded.
  bool RewritesReply() const;
  std::optional<std::string> RewrittenReply(std::string_view message);
  void BeginRewriting();
  // Opens the runtime's stream; false if the call was finished instead.
  bool Forward(const h2::HeaderBlock& headers, bool end);
  // The client's header fields, adapted to the request that the runtime gets and to a reply that is
  // read here.
  h2::HeaderBlock HeadersToSend(bool other_message) const;
  // Counts the request's present memory. False: the call was ended because of it.
  bool HoldRequest();
  void ReleaseRequest();
  void HoldTrailers(const h2::HeaderBlock& trailers);
  // Keeps a piece of the undecided request.
  void Keep(const h2::Slice& data);
  // Called when the request is complete.
  void Open();
  // Called when the request is decompressed.
  void Decide();
  // Called when its runtime is chosen.
  void OnRouted(const Status& status);
  // Sends the request to all runtimes.
  void FanOut();
  bool HoldReply(size_t bytes) override;
  void OnReplies(std::vector<h2::SliceQueue>& messages) override;
  // How long the call waits for runtimes that do not answer: short enough to answer the client in
  // time.
  std::chrono::milliseconds Patience() const;
  bool OnMessage(const h2::SliceQueue& message) override;
  void OnFanOutEnd(const Status& status) override;
  // The rewritten message with its prefix.
  h2::SliceQueue Rewritten(const h2::SliceQueue& message);
  // Whether the reply's message is read.
  bool ReadsReply() const;
  // Passes the request to the stages.
  void StartPipeline();
  void OnDecided(const Status& refusal, const Adjustment& adjustment) override;
  void OnReplySeen() override;
  bool Has(Operation operation, Field field) const override;
  // Replaces aliases in the request by the runtime's handlers. False: the call is over.
  bool NameRuntimesHandlers();
  // Forwards the whole request with these bytes appended to its message. `other_message`: the
  // message was replaced before.
  void ForwardWhole(std::string_view suffix = {}, bool other_message = false);
  // Forwards a request that the stages have decided about.
  void SendWith(std::string_view suffix, bool other_message = false);
  // Forwards the request with parts of its message replaced or removed.
  void SendSpliced(const Adjustment& adjustment);
  void SendRequest(std::string_view suffix);
  // Handles a request that stages cannot read. It passes unchanged if no runtime can read it
  // either, or if no stage needs it.
  void PassUnread(const Status& why);
  // Takes bytes of a reply whose messages are rewritten.
  void PassRewritten(const h2::Slice& data);
  // Counts bytes that wait for the client; opens the runtime's window unless they are many.
  void ConsumeRewritten();
  // The error that the client gets instead of a successful reply; OK: none.
  Status ReplyError() const;
  // Ends a reply after the client has got its header fields.
  void EndReply(const h2::HeaderBlock& end);
  // Handles the runtime's outcome before the client gets it. False: a stage holds it.
  bool OnOutcome(const h2::HeaderBlock& trailers);
  // Whether the dump, the metrics or the runtime's counters need the call's outcome.
  bool Watched() const;
  // Reports the call's outcome to the dump, the metrics and the runtime's counters, once.
  void Report(const GrpcStatus& status);
  // Counts the call for its runtime, if there are several.
  void CountAtRuntime(bool ok);
  bool Settle(const GrpcStatus& status);
  void OnServerClosed(uint32_t error_code);
  // The runtime's answer is malformed gRPC, so the call's outcome is unknown.
  void OnMalformed(std::string_view what);
  bool Over() const;

  Connection& connection_;
  std::unique_ptr<h2::Stream> client_;
  std::unique_ptr<h2::Stream> server_;
  h2::HeaderBlock headers_;
  Method method_;  // has views into headers_
  size_t position_ = 0;
  size_t runtime_ = 0;  // the runtime that the call goes to, by its position in the Backends
  size_t held_ = 0;
  CallClock clock_;    // begun only if calls are counted
  size_t ending_ = 0;  // memory that the call still takes after EndForMemory
  std::unique_ptr<CallTap> tap_;
  std::unique_ptr<Reading> reading_;
  std::unique_ptr<CallRouting> routing_;   // set with several runtimes
  std::unique_ptr<FanOutCall> fan_out_;    // instead of server_, for a call to all runtimes
  std::unique_ptr<AliasedCall> aliased_;   // set if the call may name aliases of handlers
  std::unique_ptr<Rewriting> rewriting_;   // set if one runtime's reply is rewritten
  std::unique_ptr<EventListener> events_;  // set for GetContainerEvents
  bool reported_ = false;
  bool refused_ = false;    // the method is unknown and its call failed at the runtime
  bool unpacking_ = false;  // the call waits in the relay's queue for Unpack
  bool collecting_ = false;
  bool request_complete_ = false;
};

}  // namespace resmgr
