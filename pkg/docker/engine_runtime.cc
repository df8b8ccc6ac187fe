// SPDX-License-Identifier: Apache-2.0
#include "pkg/docker/engine_runtime.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "pkg/docker/body_edits.h"
#include "pkg/docker/engine_facts.h"

namespace resmgr::docker {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFirstPause{100};
constexpr milliseconds kLastPause{2'000};
// Limit of one event in bytes; an event includes the labels.
constexpr size_t kMaxLine = size_t{4} * 1024 * 1024;
// Events from this long before the connection are requested: dockerd counts whole seconds, and may
// take a while until it listens.
constexpr std::chrono::seconds kEventsSince{2};
// The escaped {"type":["container"],"event":["create","start","die","destroy","update","rename"]}.
constexpr std::string_view kFilters =
    "%7B%22type%22%3A%5B%22container%22%5D%2C%22event%22%3A%5B%22create%22%2C%22start%22%2C%22die%"
    "22%2C%22destroy%22%2C%22update%22%2C%22rename%22%5D%7D";
// The end of a stream that lived this long does not count as a failure.
constexpr std::chrono::seconds kStable{1};

Status AddDetailsOfPod(std::string_view inspection, SandboxFacts& listed) {
  RESMGR_ASSIGN_OR_RETURN(const EngineDetails told, ReadContainerDetails(inspection));
  AddCgroup(told.cgroup_parent, listed.pod);
  listed.pod.runtime_handler = told.runtime;
  return OkStatus();
}

Status AddDetails(std::string_view inspection, ContainerFacts& listed) {
  RESMGR_ASSIGN_OR_RETURN(const EngineDetails told, ReadContainerDetails(inspection));
  RuntimeContainer& container = listed.container;
  container.resources = told.resources;
  container.started_at = told.started_at;
  container.state = told.container.state;
  container.dead = told.container.dead;
  return OkStatus();
}

}  // namespace

EngineRuntime::EngineRuntime(EventLoop& loop, const std::string& socket, Others others)
    : loop_(loop),
      socket_(socket),
      others_(others),
      log_(GetLogger("docker/engine")),
      list_client_(loop, socket),
      client_(loop, socket),
      pauses_(kFirstPause, kLastPause) {}

void EngineRuntime::Start(Events events) {
  events_ = std::move(events);
  (void)TryConnect();  // TryConnect plans the next try itself
}

Status EngineRuntime::EnsureConnected() {
  return stream_ != nullptr ? OkStatus() : TryConnect();
}

Status EngineRuntime::TryConnect() {
  auto connection = ConnectEngine(socket_);
  if (!connection.ok()) {
    if (!std::exchange(complained_, true)) {
      log_.Warn("{}; retrying", Message(connection.status()));
    }
    retry_ = loop_.After(pauses_.Next(), [this] { (void)TryConnect(); });
    return connection.status();
  }
  retry_.reset();
  line_.clear();
  own_updates_.clear();
  const auto since = std::chrono::system_clock::now() - kEventsSince;
  const std::string target = fmt::format(
      "/events?since={}&filters={}",
      std::chrono::duration_cast<std::chrono::seconds>(since.time_since_epoch()).count(), kFilters);
  stream_ = std::make_unique<EngineRequest>(
      loop_, *std::move(connection), MakeRequest("GET", target, ""),
      EngineRequest::Events{
          .on_head =
              [this](int status) {
                if (status == 200) return BeStableSoon();
                if (!std::exchange(complained_, true)) {
                  log_.Warn("the Docker engine does not tell its events: status {}", status);
                }
              },
          .on_body = [this](std::string_view bytes) { OnEventBytes(bytes); },
          .on_end = [this](const Status& status) { OnLost(status); }});
  events_.connected();
  return OkStatus();
}

void EngineRuntime::OnEventBytes(std::string_view bytes) {
  line_ += bytes;
  size_t begin = 0;
  for (size_t end = 0; (end = line_.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const auto event = ReadEvent(std::string_view(line_).substr(begin, end - begin));
    if (!event.ok() || event->kind == ContainerEvent::Kind::kUnknown) continue;
    if (event->kind == ContainerEvent::Kind::kUpdated && IsOwnUpdate(event->id)) continue;
    if (event->kind == ContainerEvent::Kind::kDeleted) own_updates_.erase(event->id);
    // Only the names of containers outside pods can change, so only they are reported.
    const bool others = others_ == Others::kShare &&
                        ReadIdentity(event->labels, event->name).kind == Identity::Kind::kOther;
    events_.happened(
        {.kind = event->kind, .id = event->id, .name = others ? event->name : std::string()});
  }
  line_.erase(0, begin);
  if (line_.size() > kMaxLine) {
    OnLost(ResourceExhausted("an event has more than {} bytes", kMaxLine));
  }
}

// Counts the connection as good only after kStable. A dockerd that starts or ends accepts
// connections and drops them at once, and each client's call makes another try.
void EngineRuntime::BeStableSoon() {
  stable_ = loop_.After(kStable, [this] {
    complained_ = false;
    pauses_.Reset();
  });
}

// Events that are missed meanwhile are made up for by the list after the next connection.
void EngineRuntime::OnLost(const Status& why) {
  if (!std::exchange(complained_, true)) {
    log_.Warn("lost the Docker engine at {}: {}", socket_,
              why.ok() ? "it ended the stream of its events" : Message(why));
  }
  stable_.reset();
  stream_.reset();
  retry_ = loop_.After(pauses_.Next(), [this] { (void)TryConnect(); });
  events_.disconnected();
}

void EngineRuntime::UpdateContainer(const ContainerId& id, const ResourceValues& values,
                                    std::function<void(Status)> done) {
  Update(id, MakeUpdateBody(values),
         [this, id, values, done = std::move(done)](const Status& status) {
           if (!WantsNanoCpus(status)) return done(status);
           Update(id, MakeUpdateBody(values, LimitedBy::kNanoCpus), done);
         });
}

void EngineRuntime::Update(const ContainerId& id, std::string_view body,
                           std::function<void(Status)> done) {
  if (stream_ != nullptr) ++own_updates_[std::string(id.value())];
  client_.Do("POST", fmt::format("/containers/{}/update", id.value()), body,
             [this, id, done = std::move(done)](const Status& status) {
               // An update that failed causes no event, so none is expected any more.
               if (!status.ok()) IsOwnUpdate(std::string(id.value()));
               done(status);
             });
}

// dockerd reports each update by one event, before or after the answer to the update.
bool EngineRuntime::IsOwnUpdate(const std::string& id) {
  const auto own = own_updates_.find(id);
  if (own == own_updates_.end()) return false;
  if (--own->second == 0) own_updates_.erase(own);
  return true;
}

void EngineRuntime::ListAll(Known known, std::function<void(StatusOr<RuntimeInventory>)> done) {
  ListEngine(list_client_, others_, std::move(known),
             {.sandbox = AddDetailsOfPod, .container = AddDetails},
             [done = std::move(done)](StatusOr<RuntimeListing::Result> result) {
               if (!result.ok()) return done(result.status());
               std::erase_if(result->containers, [&result](const ContainerFacts& facts) {
                 return result->gone_containers.contains(facts.container.id);
               });
               done((*std::move(result)).ToInventory());
             });
}

}  // namespace resmgr::docker
