// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/plugin_front.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "pkg/claims/claim_names.h"

namespace resmgr::nri {
namespace {

constexpr std::chrono::milliseconds kNone{0};

// Returns the details that the policy's stage needs: mounts and devices for hints, CDI devices and
// variables for claims.
ContainerDetails DetailsOf(const api::Container& container) {
  ContainerDetails details;
  for (const api::Mount& mount : container.mounts())
    details.mounts.push_back({.container_path = mount.destination(), .host_path = mount.source()});
  for (const api::LinuxDevice& device : container.linux().devices())
    details.devices.push_back({.container_path = device.path(), .host_path = device.path()});
  for (const api::CDIDevice& device : container.cdi_devices())
    details.cdi_devices.push_back(device.name());
  for (const std::string& variable : container.env()) {
    const std::string_view name = std::string_view(variable).substr(0, variable.find('='));
    if (UidOfClaimVariable(name)) details.environment.AddText(variable);
  }
  return details;
}

}  // namespace

// An event that is being decided.
struct PluginFront::Running {
  Running(Pipeline& pipeline, Operation operation, ContainerDetails details)
      : call(pipeline, operation, std::move(details)) {}

  EventCall call;
  EventLoop::HandlePtr deadline;
  std::list<std::unique_ptr<Running>>::iterator position;
};

PluginFront::PluginFront(EventLoop& loop, Pipeline& pipeline, Options options, Events events)
    : loop_(loop),
      pipeline_(pipeline),
      options_(std::move(options)),
      events_(std::move(events)),
      log_(GetLogger("nri/plugin")),
      updates_(
          loop,
          [this](const ContainerId& id, const LinuxResources& resources) {
            mirror_.Merge(id, resources);
          },
          [this](const ContainerId& id) { return mirror_.Has(id); }),
      patience_(options_.patience),
      updates_patience_(options_.updates_patience),
      connection_(std::make_unique<PluginConnection>(loop, *this, options_.connection)) {
  updates_.SetConnection(*connection_);
}

PluginFront::~PluginFront() = default;

Status PluginFront::EnsureConnected() const {
  if (connected_) return OkStatus();
  if (!connection_->refusal().ok()) return connection_->refusal();
  return Unavailable("the runtime's NRI at {} is not connected", options_.connection.socket);
}

void PluginFront::UpdateContainer(const ContainerId& id, const ResourceValues& values,
                                  std::function<void(Status)> done) {
  const Update update{.id = id, .adjustment = values};
  UpdateContainers({&update, 1},
                   [done = std::move(done)](size_t, const Status& status) { done(status); });
}

void PluginFront::UpdateContainers(std::span<const Update> updates, UpdatesDone done) {
  const auto shared = std::make_shared<const UpdatesDone>(std::move(done));
  updates_.Reserve(updates.size());
  for (size_t i = 0; i < updates.size(); ++i) {
    const ContainerId& id = updates[i].id;
    if (mirror_.Has(id)) {
      early_.Sent(id);
      updates_.Add(id, updates_.ChangeOf(updates[i].adjustment), {shared, i});
    } else {
      loop_.Post([shared, i, id] {
        (*shared)(i, NotFound("the runtime has told of no container {}", id.value()));
      });
    }
  }
}

void PluginFront::ListAll(Known, std::function<void(StatusOr<RuntimeInventory>)> done) {
  loop_.Post([this, done = std::move(done)] {
    const Status connected = EnsureConnected();
    done(connected.ok() ? StatusOr<RuntimeInventory>(mirror_.Inventory()) : connected);
  });
}

void PluginFront::OnConfigured(const HostInfo& host) {
  host_version_ = host.version;
  patience_ = std::min(options_.patience, host.request_timeout * 7 / 10);
  updates_patience_ = std::min(options_.updates_patience, host.request_timeout / 5);
  updates_.SetHost(host.version, options_.by_cri);
}

api::SynchronizeResponse PluginFront::OnSynchronize(const api::SynchronizeRequest& all) {
  mirror_.Clear();
  early_.Clear();
  for (const api::PodSandbox& pod : all.pods())
    mirror_.Add(ToPod(pod));
  for (const api::Container& each : all.containers()) {
    RuntimeContainer container = ToRuntimeContainer(each);
    if (container.state == ContainerState::kCreated) early_.Add(container.id);
    mirror_.Add(std::move(container));
  }
  mirror_.GuessStopped();
  connected_ = true;
  // Changes are sent later in a call of our own: an answer here would have to carry all of them.
  events_.connected();
  return {};
}

void PluginFront::OnDisconnected(const Status&) {
  calls_.clear();
  answers_.clear();
  answers_deadline_.reset();
  if (std::exchange(connected_, false)) events_.disconnected();
}

PluginFront::Running& PluginFront::Begin(Operation operation, ContainerDetails details) {
  calls_.push_front(std::make_unique<Running>(pipeline_, operation, std::move(details)));
  Running& running = *calls_.front();
  running.position = calls_.begin();
  return running;
}

void PluginFront::Start(Running& running, Decided decided, std::function<void()> too_late) {
  // A start that is not decided at once is answered in the next turn of the loop: it would wait for
  // updates of other containers, which the runtime carries out only after this answer.
  const bool is_start = running.call.request().operation() == Operation::kStartContainer;
  const std::chrono::milliseconds patience = is_start ? kNone : patience_;
  running.deadline = loop_.After(patience, [this, &running, too_late = std::move(too_late)] {
    running.call.HurryOptional();
    if (running.deadline == nullptr) return;  // it is decided
    running.call.Abandon();
    too_late();
    Forget(running);
  });
  running.call.Start(
      [&running, decided = std::move(decided)](const EventCall::Decision& decision) {
        running.deadline.reset();
        decided(decision);
      },
      [this, &running] { Forget(running); });
}

// The event is destroyed in a later turn of the loop, since it may be the caller.
void PluginFront::Forget(Running& running) {
  std::shared_ptr<Running> over = std::move(*running.position);
  calls_.erase(running.position);
  loop_.Post([over = std::move(over)] {});
}

std::shared_ptr<const void> PluginFront::UpdatesFollow() {
  if (auto announced = announced_.lock()) return announced;
  std::shared_ptr<const void> announced(this, [this, alive = lifetime_.token()](const void*) {
    if (!alive.expired()) SendAnswers();
  });
  announced_ = announced;
  return announced;
}

template <typename Response>
void PluginFront::Answer(const ContainerId& own, Response response,
                         Reply<WithUpdates<Response>> reply) {
  auto send = [this, own, response = std::move(response), reply = std::move(reply)] {
    WithUpdates<Response> answer(response);
    updates_.TakeForAnswer(own, Response::kUpdateFieldNumber, answer.encoded);
    reply(std::move(answer));
  };
  if (announced_.expired()) return send();
  answers_.push_back(std::move(send));
  if (answers_deadline_ != nullptr) return;
  answers_deadline_ = loop_.After(updates_patience_, [this] { SendAnswers(); });
}

void PluginFront::SendAnswers() {
  answers_deadline_.reset();
  for (const auto& answer : std::exchange(answers_, {}))
    answer();
}

void PluginFront::OnCreateContainer(const api::CreateContainerRequest& request,
                                    Reply<WithUpdates<api::CreateContainerResponse>> reply) {
  const api::Container& container = request.container();
  if (!mirror_.Has(PodSandboxId(request.pod().id()))) mirror_.Add(ToPod(request.pod()));
  Running& running = Begin(Operation::kCreateContainer, DetailsOf(container));
  CreateRequest create = ToCreateRequest(container);
  create.pod = ToPod(request.pod());
  running.call.request().pod_id = create.pod_id;
  running.call.request().files = FilesOf(container.linux().resources());
  running.call.request().body = std::move(create);
  running.call.SetId(container.id());
  // Added now, since the resource manager may update it as soon as it knows the id.
  RuntimeContainer made = ToRuntimeContainer(container);
  made.state = ContainerState::kCreated;
  made.told = false;
  const ContainerId id = made.id;
  mirror_.AddPlanned(std::move(made));
  Start(
      running,
      [this, id, reply](const EventCall::Decision& decision) {
        if (!decision.refusal.ok()) {
          mirror_.Remove(id);
          return reply(decision.refusal);
        }
        api::CreateContainerResponse response;
        AddTo(decision.adjustment, host_version_, *response.mutable_adjust());
        mirror_.Confirm(id);
        early_.Add(id);
        mirror_.Merge(id, AsResources(decision.adjustment.values));
        Answer(id, std::move(response), reply);
      },
      // Refused: the container, created as requested, could run on the exclusive CPUs of others.
      [this, id, reply] {
        mirror_.Remove(id);
        reply(Unavailable("cri-resmgr: the container was not placed in time; try again"));
      });
}

void PluginFront::OnUpdateContainer(const api::UpdateContainerRequest& request,
                                    Reply<WithUpdates<api::UpdateContainerResponse>> reply) {
  const ContainerId id(request.container().id());
  const LinuxResources wanted = ToResources(request.linux_resources());
  if (updates_.TakeOwn(id, wanted)) return reply(api::UpdateContainerResponse());
  Learn(request.pod(), request.container());
  Running& running = Begin(Operation::kUpdateContainerResources);
  running.call.request().container_id = id;
  running.call.request().files = FilesOf(request.linux_resources());
  running.call.request().body = ContainerUpdate{.has_linux = true, .resources = wanted};
  Start(
      running,
      [this, id, wanted, reply](const EventCall::Decision& decision) {
        if (!decision.refusal.ok()) return reply(decision.refusal);
        api::UpdateContainerResponse response;
        if (!decision.adjustment.values.empty()) {
          api::ContainerUpdate& own = *response.add_update();
          own.set_container_id(std::string(id.value()));
          AddTo(decision.adjustment.values, *own.mutable_linux()->mutable_resources());
        }
        early_.Sent(id);
        mirror_.SetUntold(id);
        mirror_.Merge(id, wanted);
        mirror_.Merge(id, AsResources(decision.adjustment.values));
        Answer(id, std::move(response), reply);
      },
      [reply] { reply(api::UpdateContainerResponse()); });
}

void PluginFront::OnStopContainer(const api::StopContainerRequest& request,
                                  Reply<WithUpdates<api::StopContainerResponse>> reply) {
  const ContainerId id(request.container().id());
  mirror_.SetState(id, ContainerState::kExited);
  early_.Remove(id);
  Running& running = Begin(Operation::kStopContainer);
  running.call.request().container_id = id;
  Start(
      running,
      [this, id, reply](const EventCall::Decision&) {
        Answer(id, api::StopContainerResponse(), reply);
      },
      [reply] { reply(api::StopContainerResponse()); });
}

void PluginFront::OnUpdatePodSandbox(const api::UpdatePodSandboxRequest& request,
                                     Reply<api::UpdatePodSandboxResponse> reply) {
  const PodSandboxId id(request.pod().id());
  const LinuxResources overhead = ToResources(request.overhead_linux_resources());
  const LinuxResources resources = ToResources(request.linux_resources());
  Running& running = Begin(Operation::kUpdatePodSandboxResources);
  running.call.request().pod_id = id;
  running.call.request().body = PodUpdate{.overhead = overhead, .resources = resources};
  Start(
      running,
      [this, id, overhead, resources, reply](const EventCall::Decision& decision) {
        if (!decision.refusal.ok()) return reply(decision.refusal);
        mirror_.SetPodResources(id, overhead, resources);
        reply(api::UpdatePodSandboxResponse());
      },
      [reply] { reply(api::UpdatePodSandboxResponse()); });
}

void PluginFront::OnPodEvent(const api::StateChangeEvent& event, Operation operation,
                             const Reply<api::Empty>& reply) {
  Running& running = Begin(operation);
  Request& request = running.call.request();
  request.pod_id = PodSandboxId(event.pod().id());
  request.container_id = ContainerId(event.container().id());
  if (operation == Operation::kRunPodSandbox) request.body = ToPod(event.pod());
  running.call.SetId(event.pod().id());
  Start(
      running,
      [reply](const EventCall::Decision& decision) {
        decision.refusal.ok() ? reply(api::Empty()) : reply(decision.refusal);
      },
      [reply] { reply(api::Empty()); });
}

void PluginFront::OnStart(const api::StateChangeEvent& event, const Reply<api::Empty>& reply) {
  const ContainerId id(event.container().id());
  Running& running = Begin(Operation::kStartContainer);
  running.call.request().container_id = id;
  Start(
      running,
      [this, id, reply](const EventCall::Decision& decision) {
        if (!decision.refusal.ok()) return reply(decision.refusal);
        mirror_.SetState(id, ContainerState::kRunning);
        reply(api::Empty());
      },
      [this, id, reply] {
        log_.Warn(
            "container {} starts although others may not have left its CPUs: the runtime moves "
            "them only after that",
            id.value());
        reply(api::Empty());
      });
}

void PluginFront::Learn(const api::PodSandbox& pod, const api::Container& shown) {
  if (mirror_.Has(ContainerId(shown.id()))) return;
  RuntimeContainer container = ToRuntimeContainer(shown);
  if (container.state == ContainerState::kExited) return;
  if (!mirror_.Has(container.pod_id)) mirror_.Add(ToPod(pod));
  if (container.state == ContainerState::kCreated) early_.Add(container.id);
  mirror_.Add(std::move(container));
  events_.happened({.kind = ContainerEvent::Kind::kCreated, .id = shown.id()});
}

void PluginFront::SendAgain(const ContainerId& id) {
  if (early_.WasSent(id)) events_.doubtful(id);
}

// Takes the values in force after all plugins have made their changes.
void PluginFront::TakeTold(const api::Container& container) {
  if (!container.linux().has_resources()) return;
  mirror_.SetTold(ContainerId(container.id()), ToResources(container.linux().resources()));
}

void PluginFront::OnEvent(const api::StateChangeEvent& event, Reply<api::Empty> reply) {
  const PodSandboxId pod(event.pod().id());
  const ContainerId container(event.container().id());
  switch (event.event()) {
    case api::EVENT_RUN_POD_SANDBOX:
      mirror_.Add(ToPod(event.pod()));
      return OnPodEvent(event, Operation::kRunPodSandbox, reply);
    case api::EVENT_STOP_POD_SANDBOX:
      mirror_.SetStopped(pod);
      return OnPodEvent(event, Operation::kStopPodSandbox, reply);
    case api::EVENT_REMOVE_POD_SANDBOX:
      mirror_.Remove(pod);
      early_.Keep([this](const ContainerId& id) { return mirror_.Has(id); });
      return OnPodEvent(event, Operation::kRemovePodSandbox, reply);
    case api::EVENT_REMOVE_CONTAINER:
      mirror_.Remove(container);
      early_.Remove(container);
      return OnPodEvent(event, Operation::kRemoveContainer, reply);
    case api::EVENT_START_CONTAINER:
      Learn(event.pod(), event.container());
      return OnStart(event, reply);
    case api::EVENT_POST_UPDATE_CONTAINER:
      Learn(event.pod(), event.container());
      TakeTold(event.container());
      return reply(api::Empty());
    case api::EVENT_POST_CREATE_CONTAINER:
      Learn(event.pod(), event.container());
      TakeTold(event.container());
      // The runtime may have changed CPUs and memory nodes after all plugins, as CRI-O's workloads
      // do.
      mirror_.SetToldSets(container, ToResources(event.container().linux().resources()));
      SendAgain(container);
      return reply(api::Empty());
    case api::EVENT_POST_START_CONTAINER:
      Learn(event.pod(), event.container());
      if (mirror_.SetState(container, ContainerState::kRunning)) {
        events_.happened({.kind = ContainerEvent::Kind::kStarted, .id = event.container().id()});
        SendAgain(container);
      }
      early_.Remove(container);
      return reply(api::Empty());
    default:
      return reply(api::Empty());
  }
}

}  // namespace resmgr::nri
