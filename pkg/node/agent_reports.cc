// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/agent_reports.h"

#include <algorithm>
#include <iterator>

#include "pkg/api/node_claims.pb.h"
#include "pkg/base/parse.h"

namespace resmgr {
namespace {

constexpr std::chrono::seconds kLossPeriod{60};

// Whether the agent will always refuse this.
bool IsFinal(const Status& status) {
  const StatusCode code = status.code();
  return code == StatusCode::kFailedPrecondition || code == StatusCode::kInvalidArgument ||
         code == StatusCode::kPermissionDenied || code == StatusCode::kUnimplemented;
}

// Whether the second one only counts the first one again.
bool IsSame(const PodEvent& a, const PodEvent& b) {
  return a.uid() == b.uid() && a.pod() == b.pod() && a.pod_namespace() == b.pod_namespace() &&
         a.warning() == b.warning() && a.reason() == b.reason() && a.message() == b.message();
}

}  // namespace

AgentCalls::AgentCalls(EventLoop& loop, h2::FlushQueue& flushes, Options options)
    : loop_(loop),
      flushes_(flushes),
      log_(GetLogger("node")),
      options_(std::move(options)),
      pauses_(options_.times.first_pause, options_.times.longest_pause) {}

void AgentCalls::Begin() {
  timer_.reset();
  if (!calling_) options_.begin();
}

void AgentCalls::BeginSoon() {
  if (timer_ == nullptr) timer_ = loop_.After(std::chrono::milliseconds(0), [this] { Begin(); });
}

void AgentCalls::Call(std::string_view method, std::string_view message, UnaryClient::Done done) {
  calling_ = true;
  if (client_ == nullptr) {
    client_ = std::make_unique<UnaryClient>(loop_, flushes_, options_.socket);
    const Status connected = client_->Connect([this](const Status& reason) { Failed(reason); });
    if (!connected.ok()) return Failed(connected);
  }
  client_->Call(method, message, options_.times.timeout, std::move(done));
}

void AgentCalls::Done(bool well) {
  calling_ = false;
  if (well) complained_ = false;
  pauses_.Reset();
  Begin();
}

void AgentCalls::Failed(const Status& why) {
  if (!std::exchange(complained_, true))
    log_.Info("{}: {}", options_.complaint, Printable(Message(why)));
  calling_ = false;
  options_.lost(why);
  client_.reset();  // last, since it may own `why`
  timer_ = loop_.After(pauses_.Next(), [this] { Begin(); });
}

AgentReports::AgentReports(EventLoop& loop, h2::FlushQueue& flushes, std::string socket,
                           Options options)
    : loop_(loop),
      log_(GetLogger("node")),
      socket_(std::move(socket)),
      options_(std::move(options)),
      values_({{{.method = "/cri_resmgr.v1.NodeReports/ShowCpus",
                 .unshown = "the node does not show which CPUs are allocated"},
                {.method = "/cri_resmgr.v1.NodeReports/ShowTopology",
                 .unshown = "schedulers are not told by NodeResourceTopology what is available"},
                {.method = "/cri_resmgr.v1.NodeClaims/ShowDevices",
                 .unshown = "no ResourceSlice says which CPUs can be claimed"}}}),
      losses_(1, kLossPeriod),
      calls_(loop, flushes,
             {.socket = socket_,
              .times = options_.times,
              .complaint = fmt::format(
                  "reports about this node are held until the agent at {} is available", socket_),
              .begin = [this] { Send(); },
              .lost = [this](const Status& why) { OnLost(why); }}) {}

void AgentReports::ShowCpus(std::string cpus) {
  cri_resmgr::v1::ShowCpusRequest request;
  request.set_cpus(std::move(cpus));
  Show(values_[kCpus], request.SerializeAsString());
}

void AgentReports::Show(LastValue& value, std::string request) {
  value.wanted = std::move(request);
  // Deferred: if the value changes again in this turn of the loop, only the last one is sent.
  calls_.BeginSoon();
}

void AgentReports::Add(PodEvent event) {
  if (takes_no_events_) return;
  const auto same =
      std::ranges::find_if(events_, [&](const PodEvent& one) { return IsSame(one, event); });
  if (same != events_.end()) {
    same->set_count(same->count() + event.count());
    same->set_last_seen(event.last_seen());
    return;
  }
  events_.push_back(std::move(event));
  LoseOldest();
  calls_.BeginSoon();
}

void AgentReports::Send() {
  LoseStale();
  for (LastValue& value : values_)
    if (value.wanted && value.wanted != value.settled) return SendValue(value);
  if (!events_.empty()) SendEvents();
}

void AgentReports::SendValue(LastValue& value) {
  calls_.Call(value.method, *value.wanted,
              [this, &value, sent = *value.wanted](const StatusOr<std::string>& reply) {
                OnShown(value, sent, reply);
              });
}

void AgentReports::OnShown(LastValue& value, std::string sent, const StatusOr<std::string>& reply) {
  const Status status = reply.status();
  if (!status.ok() && !IsFinal(status)) return calls_.Failed(status);
  cri_resmgr::v1::ShowDevicesReply devices;
  const bool readable = reply.ok() && devices.ParseFromString(*reply);
  if (!status.ok() && !std::exchange(value.refusal_told, true)) TellRefusal(value.unshown, status);
  value.settled = std::move(sent);
  calls_.Done(status.ok());
  if (&value != &values_[kDevices]) return;
  if (readable) on_pool_(devices.pool());
  if (!status.ok()) on_pool_(status);
}

void AgentReports::SendEvents() {
  for (; !events_.empty() && sending_.events_size() < options_.most_at_once; events_.pop_front())
    *sending_.add_events() = std::move(events_.front());
  calls_.Call("/cri_resmgr.v1.NodeReports/AddPodEvents", sending_.SerializeAsString(),
              [this](const StatusOr<std::string>& reply) { OnTaken(reply); });
}

void AgentReports::OnTaken(const StatusOr<std::string>& reply) {
  if (!reply.ok() && !IsFinal(reply.status())) return calls_.Failed(reply.status());
  const auto told = static_cast<size_t>(std::exchange(sending_, {}).events_size());
  cri_resmgr::v1::AddPodEventsReply answer;
  bool well = false;
  if (!reply.ok()) {
    takes_no_events_ = true;
    events_.clear();
    if (!std::exchange(events_refusal_told_, true))
      TellRefusal("pods get no Events of refusals and moves", reply.status());
  } else if (answer.ParseFromString(*reply)) {
    well = true;
    const size_t dropped = std::min<size_t>(told, answer.dropped());
    if (options_.on_events) options_.on_events(told - dropped, 0);
    Lost(dropped);
  }
  calls_.Done(well);
}

void AgentReports::LoseStale() {
  const int64_t limit = SeenAt(std::chrono::system_clock::now() - options_.stale);
  Lost(std::erase_if(events_, [limit](const PodEvent& one) { return one.last_seen() < limit; }));
}

void AgentReports::LoseOldest() {
  size_t lost = 0;
  for (; events_.size() > options_.most_events; ++lost)
    events_.pop_front();
  Lost(lost);
}

void AgentReports::Lost(size_t events) {
  if (events == 0) return;
  if (options_.on_events) options_.on_events(0, events);
  if (losses_.Pass(loop_.Now())) {
    log_.Warn("{} pod Events were dropped, and more may be: too many, or no agent at {}", events,
              socket_);
  }
}

// If an administrator has configured the refusal, it is not a reason for a warning.
void AgentReports::TellRefusal(std::string_view what, const Status& why) const {
  const bool wanted = why.code() == StatusCode::kFailedPrecondition;
  const std::string text = fmt::format("{}: the agent refuses: {}", what, Printable(Message(why)));
  wanted ? log_.Info("{}", text) : log_.Warn("{}", text);
}

void AgentReports::OnLost(const Status& why) {
  for (LastValue& value : values_)
    value.settled.reset();
  takes_no_events_ = false;
  auto& unanswered = *sending_.mutable_events();
  events_.insert(events_.begin(), std::make_move_iterator(unanswered.begin()),
                 std::make_move_iterator(unanswered.end()));
  unanswered.Clear();
  LoseOldest();
  if (values_[kDevices].wanted) on_pool_(why);
}

}  // namespace resmgr
