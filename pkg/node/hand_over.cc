// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/hand_over.h"

#include <utility>

#include "pkg/base/parse.h"

namespace resmgr {
namespace {

constexpr std::string_view kAsk = "take-over 1 ";
constexpr mode_t kTakeOverMode = 0600;
// Pause after running out of file descriptors, and between tries to serve again.
constexpr std::chrono::milliseconds kTryAgain{1'000};

}  // namespace

HandOver::HandOver(Options options)
    : options_(std::move(options)),
      log_(GetLogger("take-over")),
      acceptor_(options_.loop, {.take = [this](UniqueFd socket) { Begin(std::move(socket)); },
                                .failed =
                                    [this](const Status& why) {
                                      log_.Warn("cannot accept a connection: {}", Message(why));
                                    },
                                .pause = kTryAgain}),
      served_(
          options_.loop, options_.socket,
          [this](ListeningSocket listener) { Serve(std::move(listener)); },
          [](const std::string& path) { return ListeningSocket::Create(path, kTakeOverMode); }) {}

HandOver::~HandOver() = default;

void HandOver::Stop() {
  acceptor_.Stop();
  deadline_.reset();
  resume_again_.reset();
  step_ = Step::kEnding;
}

void HandOver::Serve(ListeningSocket listener) {
  if (step_ != Step::kEnding) acceptor_.Listen(std::move(listener));
}

void HandOver::Begin(UniqueFd socket) {
  HandOverChannel channel(std::move(socket), HandOverChannel::Files::kRefuse);
  const auto peer = channel.peer();
  std::string why;
  if (!peer.ok()) {
    why = Message(peer.status());
  } else if (peer->user != options_.user) {
    why = fmt::format("user {} may not: this daemon runs as user {}", peer->user, options_.user);
  } else if (other_) {
    why = fmt::format("process {} is taking over already", other_process_);
  } else if (!options_.refusal.empty()) {
    why = options_.refusal;
  }
  if (!why.empty()) {
    log_.Warn("the sockets are not handed over: {}", why);
    (void)channel.Send("no " + why);
    return;
  }
  other_ = std::move(channel);
  other_process_ = peer->process;
  watch_ = options_.loop.Watch(other_->fd(), EventLoop::kReadable, [this](int) { Read(); });
  Expect(Step::kAsked, "says nothing");
}

void HandOver::Expect(Step step, std::string_view what) {
  step_ = step;
  deadline_ = options_.loop.After(options_.patience, [this, what] {
    Abandon(DeadlineExceeded("it {} for {} ms", what, options_.patience.count()));
  });
}

void HandOver::Read() {
  while (other_) {
    const auto message = other_->Next();
    // The successor is committed, or none asks any more: only this daemon's end matters.
    if (step_ == Step::kEnding) {
      if (!message.ok()) watch_.reset();
      if (!message.ok() || !message->has_value()) return;
      continue;
    }
    if (message.ok() && !message->has_value()) return;
    const Status status = message.ok() ? OnMessage(**message) : message.status();
    if (!status.ok()) Abandon(status);
  }
}

Status HandOver::OnMessage(std::string_view message) {
  if (step_ == Step::kAsked && message.starts_with(kAsk)) return Offer(message.substr(kAsk.size()));
  if (step_ == Step::kOffered && message == "drain") {
    Pause();
    return OkStatus();
  }
  if (step_ == Step::kPaused && message == "end") {
    log_.Info("process {} serves from now on", other_process_);
    Stop();
    options_.end();
    return OkStatus();
  }
  return InvalidArgument("it sent \"{}\" out of turn", Printable(message));
}

Status HandOver::Offer(std::string_view version) {
  log_.Info("process {}, cri-resmgr {}, takes over", other_process_, Printable(version));
  RESMGR_ASSIGN_OR_RETURN(copies_, OpenSockets::Instance().Share());
  for (const OpenSockets::Copy& copy : copies_)
    RESMGR_RETURN_IF_ERROR(other_->SendSocket(copy));
  RESMGR_RETURN_IF_ERROR(other_->Send("all " + options_.version));
  Expect(Step::kOffered, "does not get ready");
  return OkStatus();
}

void HandOver::Pause() {
  step_ = Step::kPausing;
  deadline_.reset();
  resume_again_.reset();
  options_.door.Pause([this, pause = ++pauses_] {
    if (step_ != Step::kPausing || pause != pauses_) return;
    if (const Status told = other_->Send("drained"); !told.ok()) return Abandon(told);
    Expect(Step::kPaused, "does not go on");
  });
}

void HandOver::Abandon(const Status& why) {
  log_.Warn("process {} has not taken over, this daemon continues to serve: {}", other_process_,
            Message(why));
  const bool paused = step_ == Step::kPausing || step_ == Step::kPaused;
  step_ = Step::kServing;
  (void)other_->Send(fmt::format("no {}", Message(why).substr(0, 256)));
  watch_.reset();
  deadline_.reset();
  other_.reset();
  OpenSockets::Instance().TakeBack();
  for (OpenSockets::Copy& copy : copies_) {
    if (OpenSockets::Instance().Has(copy.path)) continue;
    InheritedSockets::Instance().Add(copy.path, std::move(copy.socket));
  }
  copies_.clear();
  if (paused) Resume();
}

void HandOver::Resume() {
  if (const Status resumed = options_.door.Resume(); !resumed.ok()) {
    log_.Error("cannot continue to serve, retrying: {}", Message(resumed));
    resume_again_ = options_.loop.After(kTryAgain, [this] { Resume(); });
  }
}

}  // namespace resmgr
