// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/runtime_connection.h"

#include <set>
#include <utility>

#include "pkg/cri/ask_each.h"
#include "pkg/cri/inventory.h"
#include "pkg/cri/messages.h"

namespace resmgr {

namespace {

constexpr std::chrono::milliseconds kReconnectPause{250};
constexpr std::chrono::seconds kCallTimeout{10};
// Status calls in flight at once while listing.
constexpr size_t kListingWidth = 32;

}  // namespace

// One run of ListAll: both lists, then the status of the unknown ones among their entries. Its
// callbacks keep it alive.
class RuntimeConnection::Listing : public std::enable_shared_from_this<Listing> {
 public:
  using Done = std::function<void(StatusOr<RuntimeInventory>)>;

  Listing(RuntimeConnection& connection, Known known, Done done)
      : connection_(connection), known_(std::move(known)), done_(std::move(done)) {}

  void Start() {
    connection_.Call("ListPodSandbox", "",
                     [self = shared_from_this()](StatusOr<std::string> reply) {
                       self->OnPods(std::move(reply));
                     });
  }

 private:
  void OnPods(StatusOr<std::string> reply) {
    if (!reply.ok() && reply.status().code() == StatusCode::kUnimplemented &&
        !connection_.old_version_) {
      connection_.old_version_ = true;
      Start();
      return;
    }
    auto pods = reply.ok() ? ReadPodList(*reply, connection_.aliases_) : reply.status();
    if (!pods.ok()) {
      done_(Annotate(pods.status(), "listing pod sandboxes"));
      return;
    }
    inventory_.pods = std::move(pods->pods);
    inventory_.stopped_pods = std::move(pods->stopped);
    connection_.Call("ListContainers", "", [self = shared_from_this()](StatusOr<std::string> list) {
      self->OnContainers(std::move(list));
    });
  }

  void OnContainers(StatusOr<std::string> reply) {
    auto containers = reply.ok() ? ReadContainerList(*reply) : reply.status();
    if (!containers.ok()) {
      done_(Annotate(containers.status(), "listing containers"));
      return;
    }
    inventory_.containers = *std::move(containers);
    ChooseUnknown();
    AskEach::Start({.count = pods_.size() + containers_.size(),
                    .width = kListingWidth,
                    .ask =
                        [self = shared_from_this()](size_t number, AskEach::Answered answered) {
                          self->Ask(number, std::move(answered));
                        },
                    .all_answered = [self = shared_from_this()] { self->Finish(); }});
  }

  void ChooseUnknown() {
    for (Pod& pod : inventory_.pods) {
      if (known_.pod && known_.pod(pod)) {
        inventory_.brief.pods.insert(pod.id);
      } else {
        pods_.push_back(&pod);
      }
    }
    for (RuntimeContainer& container : inventory_.containers) {
      if (known_.container && known_.container(container)) {
        inventory_.brief.containers.insert(container.id);
      } else {
        containers_.push_back(&container);
      }
    }
  }

  void Ask(size_t number, AskEach::Answered answered) {
    if (number < pods_.size()) {
      Pod& pod = *pods_[number];
      connection_.Call("PodSandboxStatus", EncodeVerbosePodStatusRequest(pod.id),
                       [self = shared_from_this(), &pod,
                        answered = std::move(answered)](const StatusOr<std::string>& reply) {
                         self->Note(reply.ok() ? AddPodStatus(*reply, pod) : reply.status(), pod.id,
                                    self->inventory_.unclear.pods);
                         answered();
                       });
    } else {
      RuntimeContainer& container = *containers_[number - pods_.size()];
      connection_.Call("ContainerStatus", EncodeVerboseContainerStatusRequest(container.id),
                       [self = shared_from_this(), &container,
                        answered = std::move(answered)](const StatusOr<std::string>& reply) {
                         self->Note(
                             reply.ok() ? AddContainerStatus(*reply, container) : reply.status(),
                             container.id, self->inventory_.unclear.containers);
                         answered();
                       });
    }
  }

  template <typename RuntimeId>
  void Note(const Status& status, const RuntimeId& id, std::set<RuntimeId>& unclear) {
    // An entry that disappeared after the list is reported as listed: the resource manager learns
    // its end anyway.
    if (status.ok() || status.code() == StatusCode::kNotFound) return;
    unclear.insert(id);
    if (inventory_.unclear.why.ok()) inventory_.unclear.why = status;
  }

  void Finish() {
    if (connection_.client_.connected()) {
      done_(std::move(inventory_));
    } else {
      done_(Unavailable("the connection to the runtime was lost"));
    }
  }

  RuntimeConnection& connection_;
  const Known known_;
  Done done_;
  RuntimeInventory inventory_;
  // The entries whose status is asked for.
  std::vector<Pod*> pods_;
  std::vector<RuntimeContainer*> containers_;
};

RuntimeConnection::RuntimeConnection(EventLoop& loop, h2::FlushQueue& flushes,
                                     const std::string& socket_path, const HandlerAliases* aliases)
    : loop_(loop),
      log_(GetLogger("cri/runtime")),
      socket_(socket_path),
      aliases_(aliases),
      client_(loop, flushes, socket_path),
      event_stream_(loop, client_, [this](const ContainerEvent& event) {
        if (events_.happened) events_.happened(event);
      }) {}

RuntimeConnection::~RuntimeConnection() = default;

void RuntimeConnection::Start(Events events) {
  events_ = std::move(events);
  (void)TryConnect();  // TryConnect plans the next try itself
}

Status RuntimeConnection::EnsureConnected() {
  if (client_.connected()) return OkStatus();
  // The loss of the last connection was not reported yet.
  if (up_) return Unavailable("the runtime has just closed its connection");
  return TryConnect();
}

Status RuntimeConnection::TryConnect() {
  Status status = client_.Connect([this](const Status& reason) { OnLost(reason); });
  if (status.ok()) {
    retry_.reset();
    complained_ = false;
    old_version_ = false;
    up_ = true;
    // The events come before the list, so that nothing is missed between the two.
    event_stream_.Connected();
    events_.connected();
    return status;
  }
  if (!std::exchange(complained_, true)) {
    log_.Warn("the runtime is not available yet, retrying: {}", Message(status));
  }
  retry_ = loop_.After(kReconnectPause, [this] { (void)TryConnect(); });
  return Annotate(status, "no runtime");
}

void RuntimeConnection::OnLost(const Status& reason) {
  log_.Warn("lost the runtime at {}: {}", socket_, Message(reason));
  up_ = false;
  event_stream_.Disconnected();
  events_.disconnected();
  (void)TryConnect();
}

void RuntimeConnection::Call(std::string_view method, std::string_view message,
                             UnaryClient::Done done) {
  const std::string path =
      fmt::format("/runtime.{}.RuntimeService/{}", old_version_ ? "v1alpha2" : "v1", method);
  client_.Call(path, message, kCallTimeout, std::move(done));
}

void RuntimeConnection::UpdateContainer(const ContainerId& id, const ResourceValues& adjustment,
                                        std::function<void(Status)> done) {
  Call("UpdateContainerResources", EncodeUpdateRequest(id, adjustment),
       [done = std::move(done)](const StatusOr<std::string>& reply) { done(reply.status()); });
}

void RuntimeConnection::ListAll(Known known, std::function<void(StatusOr<RuntimeInventory>)> done) {
  std::make_shared<Listing>(*this, std::move(known), std::move(done))->Start();
}

}  // namespace resmgr
