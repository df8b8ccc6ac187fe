// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/base/recycled.h"
#include "pkg/cri/aliased_call.h"
#include "pkg/cri/backend_router.h"
#include "pkg/cri/body_rewriter.h"
#include "pkg/cri/call_clock.h"
#include "pkg/cri/call_tap.h"
#include "pkg/cri/event_reader.h"
#include "pkg/cri/fan_out_call.h"
#include "pkg/cri/method_table.h"
#include "pkg/grpc/grpc_message.h"
#include "pkg/h2/stream.h"
#include "pkg/pipeline/pipeline_call.h"

namespace resmgr {

class Connection;

// One call from a client, joined to a stream towards a runtime. What arrives on one side is queued
// on the other, and the receiving window is opened again only when the bytes have left: so memory
// stays within the windows. A call that stages look at holds its (single) request message until
// they have decided; its reply is read while it passes, and its end waits for them.
//
// Ends, and is destroyed by its Connection, when the streams of both sides are closed.
class Call final : public h2::StreamHandler,
                   private PipelineCall::Front,
                   private FanOutCall::Client,
                   public Recycled<Call> {
 public:
  Call(Connection& connection, std::unique_ptr<h2::Stream> client, h2::HeaderBlock headers);
  ~Call() override;

  // Where the Connection keeps it.
  void set_position(size_t position) { position_ = position; }
  size_t position() const { return position_; }

  const Method& method() const { return method_; }

  // Routes and forwards, or answers. `end`: the request has no body. May end the call and destroy
  // it.
  void Start(bool end);
  // Answers the client from here and gives the runtime's stream up.
  void Finish(const Status& status);
  // Ends it in favour of others: RESOURCE_EXHAUSTED, and nothing of it is kept.
  void EndForMemory(std::string_view why);
  // Bytes that are kept for it, header fields included.
  size_t held() const { return held_; }
  // Goes on to decompress its request. True: once more.
  bool Unpack(size_t most);

  void OnHeaders(h2::Stream& stream, const h2::HeaderBlock& headers, bool end) override;
  void OnData(h2::Stream& stream, const h2::Slice& data) override;
  void OnEnd(h2::Stream& stream, const h2::HeaderBlock& trailers) override;
  void OnSent(h2::Stream& stream, size_t count) override;
  void OnClose(h2::Stream& stream, uint32_t error_code) override;

 private:
  // What only a call has that stages look at.
  struct Reading;
  // A reply of one runtime whose messages become others.
  struct Rewriting {
    explicit Rewriting(BodyRewriter::Rewrite rewrite) : body(std::move(rewrite)) {}

    BodyRewriter body;
    // Bytes of the runtime whose window is to be opened, and what is accounted for: the message of
    // which more is to come, and what waits for the client.
    size_t owed = 0;
    size_t held = 0;
  };

  bool FromClient(const h2::Stream& stream) const { return &stream == client_.get(); }
  // Whether stages look at it now.
  bool LookedAt() const;
  // From here on no stage looks at it.
  void EndPipeline();
  // Keeps nothing that is only for going on.
  void GiveUp();
  // Its messages become others: handlers have aliases, or the client is shown what it asked for.
  // Known from when it is forwarded.
  bool RewritesReply() const;
  std::optional<std::string> RewrittenReply(std::string_view message);
  void BeginRewriting();
  // Opens the runtime's stream; false when the call was finished instead.
  bool Forward(const h2::HeaderBlock& headers, bool end);
  // The client's header fields, as they fit the request that the runtime gets and the reply that is
  // read here.
  h2::HeaderBlock HeadersToSend(bool other_message) const;
  // Accounts for what the request takes now. False: the call was ended for it.
  bool HoldRequest();
  void ReleaseRequest();
  void HoldTrailers(const h2::HeaderBlock& trailers);
  // Keeps a piece of the request that is not decided yet.
  void Keep(const h2::Slice& data);
  // The whole request is here.
  void Open();
  // And is decompressed.
  void Decide();
  // And it is known which of several runtimes it goes to.
  void OnRouted(const Status& status);
  // Sends it to all of them.
  void FanOut();
  bool HoldReply(size_t bytes) override;
  void OnReplies(std::vector<h2::SliceQueue>& messages) override;
  // How long the call waits for runtimes that do not answer: short enough to answer the client in
  // time.
  std::chrono::milliseconds Patience() const;
  bool OnMessage(const h2::SliceQueue& message) override;
  void OnFanOutEnd(const Status& status) override;
  // A message with its prefix, as the client gets it.
  h2::SliceQueue Rewritten(const h2::SliceQueue& message);
  // Whether what the reply's message says is of interest.
  bool ReadsReply() const;
  // Shows the request to the stages.
  void StartPipeline();
  void OnDecided(const Status& refusal, const Adjustment& adjustment) override;
  void OnReplySeen() override;
  bool Has(Operation operation, Field field) const override;
  // Puts the runtime's handlers in place of aliases in the request. False: the call is over.
  bool NameRuntimesHandlers();
  // Forwards the request with these bytes behind its message.
  void SendWith(std::string_view suffix);
  // Forwards the request with a message in which parts are replaced or removed.
  void SendSpliced(const Adjustment& adjustment);
  void SendRequest(std::string_view suffix);
  // Stages cannot read the request. It passes as it is where no runtime can read it either, or
  // where no stage looks at it.
  void PassUnread(const Status& why);
  // Bytes of a reply whose messages become others.
  void PassRewritten(const h2::Slice& data);
  // Accounts for what of those waits here, and opens the runtime's window unless it is much.
  void ConsumeRewritten();
  // What the client gets in place of a good reply; OK: the reply.
  Status ReplyError() const;
  // Ends a reply whose header fields the client has.
  void EndReply(const h2::HeaderBlock& end);
  // The runtime's outcome, before the client sees it. False: a stage holds it.
  bool OnOutcome(const h2::HeaderBlock& trailers);
  // Whether the dump or the metrics are told how the call ends.
  bool Watched() const;
  // Tells the dump and the metrics how the call ended, once.
  void Report(const GrpcStatus& status);
  // Counts the call for the runtime that it went to, where there are several.
  void CountAtRuntime(bool ok);
  bool Settle(const GrpcStatus& status);
  void OnServerClosed(uint32_t error_code);
  // The runtime's answer is none that gRPC knows: what became of the call is unknown.
  void OnMalformed(std::string_view what);
  bool Over() const;

  Connection& connection_;
  std::unique_ptr<h2::Stream> client_;
  std::unique_ptr<h2::Stream> server_;
  h2::HeaderBlock headers_;
  Method method_;  // with views into headers_
  size_t position_ = 0;
  size_t held_ = 0;
  CallClock clock_;    // begins where calls are counted
  size_t ending_ = 0;  // what it still takes when it was ended for its memory
  std::unique_ptr<CallTap> tap_;
  std::unique_ptr<Reading> reading_;
  std::unique_ptr<CallRouting> routing_;  // where there are several runtimes
  std::unique_ptr<FanOutCall> fan_out_;   // in place of server_, where it goes to all of them
  std::unique_ptr<AliasedCall> aliased_;  // where handlers have aliases that it may name
  std::unique_ptr<Rewriting> rewriting_;  // where the reply of one runtime is rewritten
  std::unique_ptr<EventReader> events_;   // of GetContainerEvents
  bool reported_ = false;
  bool refused_ = false;    // by the runtime, where the method is unknown
  bool unpacking_ = false;  // in the relay's queue
  bool collecting_ = false;
  bool request_complete_ = false;
};

}  // namespace resmgr
