// SPDX-License-Identifier: Apache-2.0
// The request of a call that is read before it is forwarded: it is collected, decompressed, routed,
// shown to the stages, and sent with their changes.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "pkg/cri/adjustment_edits.h"
#include "pkg/cri/call.h"
#include "pkg/cri/call_reading.h"
#include "pkg/cri/connection.h"
#include "pkg/cri/relay.h"

namespace resmgr {

void Call::Keep(const h2::Slice& data) {
  client_->Consume(data.size());
  reading_->request.Add(data, connection_.scratch());
  if (HoldRequest() && !reading_->request.fits()) {
    PassUnread(ResourceExhausted("it is larger than any runtime takes"));
  }
}

bool Call::HoldRequest() {
  const size_t memory = reading_->request.memory();
  if (memory <= reading_->held) return true;
  const size_t more = memory - reading_->held;
  if (!connection_.Hold(*this, more)) return false;
  held_ += more;
  reading_->held = memory;
  return true;
}

void Call::ReleaseRequest() {
  connection_.Release(reading_->held);
  held_ -= reading_->held;
  reading_->held = 0;
}

void Call::Open() {
  HeldMessage& request = reading_->request;
  if (const Status status = request.Open(headers_); !status.ok()) {
    PassUnread(status);
  } else if (request.packed()) {
    unpacking_ = true;
    connection_.relay().UnpackSoon(*this);
  } else {
    Decide();
  }
}

bool Call::Unpack(size_t most) {
  unpacking_ = false;
  if (!LookedAt() && routing_ == nullptr && aliased_ == nullptr) return false;
  const StatusOr<bool> whole = reading_->request.Unpack(most);
  if (!whole.ok()) {
    PassUnread(whole.status());
  } else if (!HoldRequest()) {
    return false;
  } else if (*whole) {
    Decide();
  } else {
    unpacking_ = true;
  }
  return unpacking_;
}

void Call::Decide() {
  if (routing_ == nullptr) return OnRouted(OkStatus());
  routing_->Choose(reading_->request.message(), Patience(), [this](const Status& status) {
    const h2::FlushQueue::Scope scope(connection_.relay().flushes());
    OnRouted(status);
  });
}

void Call::OnRouted(const Status& status) {
  if (!status.ok()) return Finish(status);
  if (LookedAt()) return StartPipeline();
  if (!NameRuntimesHandlers()) return;
  if (routing_ != nullptr && routing_->all()) {
    FanOut();
  } else if (Forward(HeadersToSend(false), false)) {
    SendRequest("");
    server_->SendEnd();
  }
}

void Call::StartPipeline() {
  CriRequest& request = reading_->stages->request;
  const std::string_view message = reading_->request.message();
  if (request.Read(message)) {
    reading_->stages->call.Start(request.request());
  } else if (!IsCutShort(message)) {
    // A runtime's parser may be less strict.
    Finish(InvalidArgument("cannot tell what this {} is to do: its message is malformed",
                           method_.name));
  } else {
    EndPipeline();
    if (NameRuntimesHandlers()) SendWith("");
  }
}

bool Call::NameRuntimesHandlers() {
  if (aliased_ == nullptr) return true;
  HeldMessage& request = reading_->request;
  const std::optional<std::string> changed = aliased_->OnRequest(request.message());
  if (!changed) return true;
  if (tap_ != nullptr) tap_->OnRequestReplaced(request.message(), *changed);
  if (reading_->stages) reading_->stages->request.request().Close();
  request.Replace(*changed);
  reading_->other_handlers = true;
  return HoldRequest();
}

void Call::PassUnread(const Status& why) {
  if (routing_ != nullptr) {
    return Finish(
        InvalidArgument("cannot tell which runtime {} is for: {}", method_.name, Message(why)));
  }
  // A runtime that can read the request would carry it out without the policy's decision.
  const bool readable = !request_complete_ || !reading_->request.cut_short();
  if (LookedAt() && readable) {
    return Finish(Annotate(why, fmt::format("cannot tell what this {} is to do", method_.name)));
  }
  connection_.relay().NoteUnread(method_, Message(why));
  EndPipeline();
  if (!Forward(HeadersToSend(false), false)) return;
  SendRequest("");
  if (request_complete_) server_->SendEnd();
}

bool Call::Has(Operation operation, Field field) const {
  return CriHas(operation, field);
}

void Call::OnDecided(const Status& refusal, const Adjustment& adjustment) {
  const h2::FlushQueue::Scope scope(connection_.relay().flushes());
  if (!refusal.ok()) return Finish(refusal);
  if (!NameRuntimesHandlers()) return;
  if (adjustment.wide() != nullptr) {
    SendSpliced(adjustment);
  } else {
    SendWith(connection_.relay().suffix().For(method_.operation, adjustment.values));
  }
}

void Call::SendWith(std::string_view suffix) {
  if (tap_ != nullptr && !suffix.empty()) {
    tap_->OnRequestChanged(reading_->request.message(), suffix);
  }
  reading_->stages->request.request().Close();
  if (!Forward(HeadersToSend(!suffix.empty()), false)) return;
  SendRequest(suffix);
  server_->SendEnd();
}

void Call::SendSpliced(const Adjustment& adjustment) {
  HeldMessage& request = reading_->request;
  const StatusOr<SplicedMessage> spliced =
      SpliceAdjustment(method_.operation, request.message(), adjustment);
  if (!spliced.ok()) {
    reading_->stages->call.RollBack();
    Finish(spliced.status());
    return;
  }
  if (spliced->suffix()) {
    SendWith(*spliced->suffix());
    return;
  }
  if (tap_ != nullptr) tap_->OnRequestReplaced(request.message(), spliced->ToString());
  request.Replace(*spliced);
  if (!HoldRequest()) return;
  reading_->stages->request.request().Close();
  if (!Forward(HeadersToSend(true), false)) return;
  SendRequest("");
  server_->SendEnd();
}

void Call::SendRequest(std::string_view suffix) {
  HeldMessage& request = reading_->request;
  collecting_ = false;
  if (!suffix.empty()) request.MakeLonger(suffix.size());
  reading_->prepaid += request.size() + suffix.size();
  for (const h2::Slice& slice : request.body().slices())
    server_->SendData(slice);
  if (!suffix.empty()) server_->SendData(connection_.scratch().Copy(suffix));
  request.Clear();
}

}  // namespace resmgr
