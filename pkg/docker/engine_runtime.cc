// SPDX-License-Identifier: Apache-2.0
#include "pkg/docker/engine_runtime.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "pkg/docker/body_edits.h"

namespace resmgr::docker {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFirstPause{100};
constexpr milliseconds kLastPause{2'000};
constexpr milliseconds kCallTimeout{10'000};
// Limit of one event in bytes; an event includes the labels.
constexpr size_t kMaxLine = size_t{4} * 1024 * 1024;
// Events from this long before the connection are requested: dockerd, which counts whole seconds,
// may take a while until it listens.
constexpr std::chrono::seconds kEventsSince{2};
// The escaped {"type":["container"],"event":["create","start","die","destroy","update","rename"]}.
constexpr std::string_view kFilters =
    "%7B%22type%22%3A%5B%22container%22%5D%2C%22event%22%3A%5B%22create%22%2C%22start%22%2C%22die%"
    "22%2C%22destroy%22%2C%22update%22%2C%22rename%22%5D%7D";
// The end of a stream that lived this long does not count as a failure.
constexpr std::chrono::seconds kStable{1};

}  // namespace

// One list, then inspections of the unknown containers.
class EngineRuntime::Listing : public std::enable_shared_from_this<Listing> {
 public:
  using Done = std::function<void(StatusOr<RuntimeInventory>)>;

  Listing(EngineRuntime& runtime, Known known, Done done)
      : runtime_(runtime), known_(std::move(known)), done_(std::move(done)) {}

  void Start() {
    Ask("/containers/json?all=1", [this](const std::string& body) {
      const auto all = ReadContainerList(body);
      if (!all.ok()) return Finish(Annotate(all.status(), "the Docker engine's list"));
      Take(*all);
    });
  }

 private:
  // Passes the body of a success to `then`; a failure ends the list.
  void Ask(const std::string& target, std::function<void(const std::string&)> then) {
    runtime_.client_.Call("GET", target, "", kCallTimeout,
                          [self = shared_from_this(),
                           then = std::move(then)](const StatusOr<EngineClient::Reply>& reply) {
                            const Status status = reply.ok() ? ReplyStatus(*reply) : reply.status();
                            if (!status.ok()) return self->Finish(status);
                            then(reply->body);
                          });
  }

  void Take(const std::vector<EngineContainer>& all) {
    bool shares = false;
    for (const EngineContainer& container : all) {
      const Identity identity = IdentityOf(container.labels, container.name, runtime_.others_);
      if (identity.kind == Identity::Kind::kSandbox) {
        TakeSandbox(container, identity);
      } else if (identity.kind == Identity::Kind::kContainer) {
        shares = shares || identity.pod_id == OthersPod().id;
        TakeContainer(container, identity);
      }
    }
    if (shares) inventory_.pods.push_back(OthersPod());
    if (--pending_ == 0) Finish(OkStatus());
  }
  void TakeSandbox(const EngineContainer& container, const Identity& identity) {
    Pod pod = ToPod(container, identity);
    if (container.ended) inventory_.stopped_pods.insert(pod.id);
    if (known_.pod && known_.pod(pod)) {
      inventory_.brief.pods.insert(pod.id);
      inventory_.pods.push_back(std::move(pod));
      return;
    }
    Inspect(container.id,
            [this, pod = std::move(pod)](const StatusOr<EngineDetails>& told) mutable {
              if (told.ok()) {
                AddCgroup(told->cgroup_parent, pod);
                pod.runtime_handler = told->runtime;
              } else if (told.status().code() == StatusCode::kNotFound) {
                pod.qos_derived = true;  // removed; stored values still hold
              } else {
                inventory_.unclear.pods.insert(pod.id);
                inventory_.unclear.why.Update(told.status());
              }
              inventory_.pods.push_back(std::move(pod));
            });
  }
  void TakeContainer(const EngineContainer& container, const Identity& identity) {
    RuntimeContainer listed = ToContainer(container, identity);
    if (known_.container && known_.container(listed)) {
      inventory_.brief.containers.insert(listed.id);
      inventory_.containers.push_back(std::move(listed));
      return;
    }
    Inspect(container.id,
            [this, listed = std::move(listed)](const StatusOr<EngineDetails>& told) mutable {
              if (told.ok()) {
                listed.resources = told->resources;
                listed.started_at = told->started_at;
                listed.state = told->container.state;
                listed.dead = told->container.dead;
              } else if (told.status().code() == StatusCode::kNotFound) {
                return;  // removed meanwhile
              } else {
                inventory_.unclear.containers.insert(listed.id);
                inventory_.unclear.why.Update(told.status());
              }
              inventory_.containers.push_back(std::move(listed));
            });
  }

  // If the connection is lost, the list fails.
  void Inspect(const ContainerId& id, std::function<void(const StatusOr<EngineDetails>&)> then) {
    ++pending_;
    runtime_.client_.Call(
        "GET", fmt::format("/containers/{}/json", id.value()), "", kCallTimeout,
        [self = shared_from_this(),
         then = std::move(then)](const StatusOr<EngineClient::Reply>& reply) {
          if (!reply.ok() && reply.status().code() != StatusCode::kDeadlineExceeded) {
            return self->Finish(reply.status());
          }
          const Status status = reply.ok() ? ReplyStatus(*reply) : reply.status();
          then(status.ok() ? ReadContainerDetails(reply->body) : StatusOr<EngineDetails>(status));
          if (--self->pending_ == 0) self->Finish(OkStatus());
        });
  }

  void Finish(const Status& status) {
    if (const Done done = std::exchange(done_, nullptr)) {
      done(status.ok() ? StatusOr<RuntimeInventory>(std::move(inventory_))
                       : StatusOr<RuntimeInventory>(status));
    }
  }

  EngineRuntime& runtime_;
  const Known known_;
  Done done_;
  RuntimeInventory inventory_;
  size_t pending_ = 1;  // open inspections, plus one for the list
};

EngineRuntime::EngineRuntime(EventLoop& loop, const std::string& socket, Others others)
    : loop_(loop),
      socket_(socket),
      others_(others),
      log_(GetLogger("docker/engine")),
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
    // Containers of pods have their names from their creation.
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

// A dockerd that starts or ends accepts connections and drops them at once, and each client's call
// makes another try.
void EngineRuntime::BeStableSoon() {
  stable_ = loop_.After(kStable, [this] {
    complained_ = false;
    pauses_.Reset();
  });
}

// Missed events are made up for by the list after the next connection.
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

void EngineRuntime::Update(const ContainerId& id, std::string body,
                           std::function<void(Status)> done) {
  if (stream_ != nullptr) ++own_updates_[std::string(id.value())];
  client_.Call("POST", fmt::format("/containers/{}/update", id.value()), std::move(body),
               kCallTimeout,
               [this, id, done = std::move(done)](const StatusOr<EngineClient::Reply>& reply) {
                 const Status status = reply.ok() ? ReplyStatus(*reply) : reply.status();
                 // A failed update causes no event.
                 if (!status.ok()) IsOwnUpdate(std::string(id.value()));
                 done(status);
               });
}

// dockerd reports each update once, before or after its answer.
bool EngineRuntime::IsOwnUpdate(const std::string& id) {
  const auto own = own_updates_.find(id);
  if (own == own_updates_.end()) return false;
  if (--own->second == 0) own_updates_.erase(own);
  return true;
}

void EngineRuntime::ListAll(Known known, std::function<void(StatusOr<RuntimeInventory>)> done) {
  std::make_shared<Listing>(*this, std::move(known), std::move(done))->Start();
}

}  // namespace resmgr::docker
