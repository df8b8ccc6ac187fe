// SPDX-License-Identifier: Apache-2.0
#include "pkg/docker/docker_front.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "pkg/base/percent.h"
#include "pkg/docker/body_edits.h"
#include "pkg/docker/container_body.h"
#include "pkg/docker/http_status.h"
#include "pkg/docker/json_text.h"
#include "pkg/docker/proxy.h"
#include "pkg/docker/request_target.h"
#include "pkg/model/request.h"
#include "pkg/pipeline/pipeline_call.h"
#include "pkg/sys/lifetime.h"

namespace resmgr::docker {

// One request of the Docker API on its way through the pipeline. Loop's thread only.
class DockerCall final : public Interception, private PipelineCall::Front, private Request::Source {
 public:
  DockerCall(DockerFront& front, Interception::Client& client, RequestTarget target)
      : front_(front), client_(client), target_(std::move(target)) {}

  void OnRequest(std::string_view body) override;
  void OnNotForwarded() override;
  void OnReply(int status, std::string_view body) override;

 private:
  void Create();
  void Find();
  // `id` is the whole id.
  void OnFound(std::string_view id, Identity::Kind kind);
  Request& NewRequest(Operation operation);
  void Start();
  void OnDecided(const Status& refusal, const Adjustment& adjustment) override;
  void OnReplySeen() override;
  bool Has(Operation operation, Field field) const override;
  bool LeavesOut(Operation operation, const FieldChange& change) const override;
  // Only a creation can remove a cpuset: in an update an empty list means no change.
  bool ClearsPlacement() const override { return target_.action == Action::kCreate; }

  bool CanSay(const Adjustment& adjustment) const;
  bool ReadCreate(CreateRequest& create) override;
  std::optional<Pod> ReadPod() override;
  bool ReadDetails(DetailSet parts, ContainerDetails& details) override;

  DockerFront& front_;
  Interception::Client& client_;
  const RequestTarget target_;
  std::string_view body_;
  CreateBody create_;  // for kCreate; for an update only its details
  Identity identity_;
  std::string id_;  // of the existing container
  std::string made_id_;
  std::optional<Request> request_;
  std::optional<PipelineCall> call_;  // destroyed before the request
  Lifetime lifetime_;
};

namespace {

// The operations that a request is, for a sandbox and for a container of a pod; kOther: none.
struct Operations {
  Operation sandbox = Operation::kOther;
  Operation container = Operation::kOther;
};

Operations OperationsOf(const RequestTarget& target) {
  constexpr Operations kStops{Operation::kStopPodSandbox, Operation::kStopContainer};
  switch (target.action) {
    case Action::kCreate:
      return {Operation::kRunPodSandbox, Operation::kCreateContainer};
    case Action::kStart:
    case Action::kRestart:
      return {.container = Operation::kStartContainer};
    case Action::kUpdate:
      return {.container = Operation::kUpdateContainerResources};
    case Action::kKill:
      return IsKill(target.signal) ? kStops : Operations();
    case Action::kStop:
      return kStops;
    case Action::kRemove:
      return {Operation::kRemovePodSandbox, Operation::kRemoveContainer};
  }
  return {};
}

bool LooksAt(const Pipeline& pipeline, Operation operation) {
  return operation != Operation::kOther && pipeline.LooksAt(operation);
}

// dockerd ignores the body of a start if it has at most this many bytes.
constexpr size_t kNoHostConfig = 7;

}  // namespace

DockerFront::DockerFront(EventLoop& loop, Pipeline& pipeline, const std::string& engine_socket,
                         Others others)
    : pipeline_(pipeline), others_(others), engine_(loop, engine_socket, Proxy::kMaxClients) {}

std::unique_ptr<Interception> DockerFront::Begin(std::string_view method, std::string_view target,
                                                 Interception::Client& client) {
  auto read = ReadTarget(method, target);
  if (!read) return nullptr;
  const Operations operations = OperationsOf(*read);
  if (!LooksAt(pipeline_, operations.sandbox) && !LooksAt(pipeline_, operations.container)) {
    return nullptr;
  }
  return std::make_unique<DockerCall>(*this, client, *std::move(read));
}

void DockerFront::Learn(std::string_view id, Identity::Kind kind) {
  if (known_.size() >= kMaxKnown) known_.clear();
  known_.insert_or_assign(std::string(id), kind);
}

std::optional<Identity::Kind> DockerFront::KindOf(std::string_view id) const {
  const auto found = known_.find(std::string(id));
  return found == known_.end() ? std::nullopt : std::optional(found->second);
}

void DockerCall::OnRequest(std::string_view body) {
  body_ = body;
  if (target_.action == Action::kCreate) {
    Create();
  } else {
    Find();
  }
}

void DockerCall::Create() {
  auto read = ReadCreateBody(body_);
  if (!read.ok()) {
    return client_.Reject(Annotate(read.status(), "cannot tell what container this creates"));
  }
  create_ = *std::move(read);
  identity_ = IdentityOf(create_.labels, target_.name, front_.others());
  if (identity_.kind == Identity::Kind::kOther) return client_.Forward(std::nullopt);
  if (identity_.pod_id == OthersPod().id) {
    // An unnamed container gets a unique name: of two containers with one name in a pod the older
    // one counts as dead.
    if (identity_.container.empty()) identity_.container = front_.MakeName();
  } else {
    AddCgroup(create_.cgroup_parent, identity_.pod);
    identity_.pod.runtime_handler = create_.runtime;
  }
  if (identity_.kind == Identity::Kind::kSandbox) {
    Request& request = NewRequest(Operation::kRunPodSandbox);
    request.pod_attempt = identity_.attempt;
    request.body = identity_.pod;
    return Start();
  }
  CreateRequest create;
  ReadCreate(create);
  Request& request = NewRequest(Operation::kCreateContainer);
  request.pod_id = identity_.pod_id;
  request.body = std::move(create);
  Start();
}

// Asks dockerd, which alone resolves names and abbreviated ids.
void DockerCall::Find() {
  if (const auto kind = front_.KindOf(target_.container)) {
    return OnFound(target_.container, *kind);
  }
  const std::string path = fmt::format("/containers/{}/json", PercentEncoded(target_.container));
  const auto found = [this](const StatusOr<EngineClient::Reply>& reply) {
    if (!reply.ok()) return client_.Reject(reply.status());
    // dockerd answers the forwarded request with this error.
    if (!ReplyStatus(*reply).ok()) return client_.Forward(std::nullopt);
    const auto told = ReadContainerDetails(reply->body);
    if (!told.ok()) return client_.Reject(told.status());
    const EngineContainer& container = told->container;
    const Identity::Kind kind = IdentityOf(container.labels, container.name, front_.others()).kind;
    front_.Learn(container.id.value(), kind);
    OnFound(container.id.value(), kind);
  };
  // Without its client, this call ends, and the answer is not needed.
  front_.engine().Call("GET", path, "", EngineClient::kCallTimeout, lifetime_.Guard(found),
                       lifetime_.token());
}

void DockerCall::OnFound(std::string_view id, Identity::Kind kind) {
  id_ = id;
  const bool sandbox = kind == Identity::Kind::kSandbox;
  const Operations operations = OperationsOf(target_);
  const Operation operation = sandbox ? operations.sandbox : operations.container;
  // A form in the body may name another signal, which overrides the query's.
  const bool other_signal = target_.action == Action::kKill && !body_.empty();
  if (kind == Identity::Kind::kOther || other_signal || !LooksAt(front_.pipeline(), operation)) {
    return client_.Forward(std::nullopt);
  }
  if (operation == Operation::kStartContainer && body_.size() > kNoHostConfig) {
    // Before API version 1.24 the HostConfig of a start replaces that of the creation, also its
    // CPUs.
    return client_.Reject(InvalidArgument(
        "container {}: the start of a pod's container may not bring another HostConfig", id));
  }
  Request& request = NewRequest(operation);
  if (sandbox) {
    request.pod_id = PodSandboxId(id_);
  } else {
    request.container_id = ContainerId(id_);
  }
  if (operation == Operation::kUpdateContainerResources) {
    const auto update = ReadUpdateBody(body_);
    if (!update.ok()) {
      return client_.Reject(Annotate(update.status(), "cannot tell what this update changes"));
    }
    create_.details.memory_swap_limit = update->memory_swap_limit;
    request.body =
        ContainerUpdate{.has_linux = update->has_resources, .resources = update->resources};
  }
  Start();
}

Request& DockerCall::NewRequest(Operation operation) {
  request_.emplace(operation, static_cast<Request::Source&>(*this));
  return *request_;
}

void DockerCall::Start() {
  call_.emplace(front_.pipeline(), static_cast<PipelineCall::Front&>(*this));
  call_->Start(*request_);
}

// dockerd ignores fields that are newer than the API version of the request, so they cannot be
// used.
bool DockerCall::CanSay(const Adjustment& adjustment) const {
  constexpr uint64_t kNonRecursive = 40;
  if (target_.api_minor.value_or(kNonRecursive) >= kNonRecursive || adjustment.wide() == nullptr) {
    return true;
  }
  return std::ranges::none_of(adjustment.wide()->mounts, [](const auto& edit) {
    return edit.value && edit.value->non_recursive;
  });
}

void DockerCall::OnDecided(const Status& refusal, const Adjustment& adjustment) {
  if (!refusal.ok()) return client_.Reject(refusal);
  std::optional<std::string> body;
  if (!adjustment.empty()) {
    auto edited = CanSay(adjustment) ? EditBody(request_->operation(), body_, adjustment)
                                     : FailedPrecondition(
                                           "version 1.{} of the API has no "
                                           "non-recursive mounts",
                                           target_.api_minor.value_or(0));
    if (!edited.ok()) {
      call_->RollBack();
      return client_.Reject(Annotate(edited.status(), "cannot write the changes into the request"));
    }
    body = *std::move(edited);
  }
  request_->Close();
  client_.Forward(std::move(body));
}

void DockerCall::OnNotForwarded() {
  if (call_) call_->RollBack();
}

void DockerCall::OnReply(int status, std::string_view body) {
  const int code = static_cast<int>(CodeOfStatus(status));
  if (target_.action == Action::kCreate && code == 0) {
    made_id_ = LastText(body, "Id").value_or("");
    if (!made_id_.empty()) front_.Learn(made_id_, identity_.kind);
  }
  if (target_.action == Action::kRemove && code == 0) front_.Forget(id_);
  if (!call_) return client_.PassReply(OkStatus());
  if (call_->OnReply({.known = true, .code = code, .id = made_id_})) OnReplySeen();
}

void DockerCall::OnReplySeen() {
  client_.PassReply(call_->reply_error());
}

bool DockerCall::Has(Operation operation, Field field) const {
  return DockerHas(operation, field);
}

bool DockerCall::LeavesOut(Operation operation, const FieldChange& change) const {
  return DockerLeavesOut(operation, change);
}

bool DockerCall::ReadCreate(CreateRequest& create) {
  create.pod_id = identity_.pod_id;
  create.pod = std::nullopt;
  create.name = identity_.container;
  create.attempt = identity_.attempt;
  create.labels = identity_.labels;
  create.annotations = identity_.annotations;
  create.has_resources = create_.has_host_config;
  create.resources = create_.resources;
  return true;
}

std::optional<Pod> DockerCall::ReadPod() {
  return identity_.pod;
}

bool DockerCall::ReadDetails(DetailSet, ContainerDetails& details) {
  details = create_.details;
  return true;
}

}  // namespace resmgr::docker
