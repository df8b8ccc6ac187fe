// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/stage/creation.h"

#include <utility>

#include "pkg/base/utf8.h"
#include "pkg/nri/host/mapping/resource_mapping.h"
#include "pkg/nri/host/session/question_queue.h"
#include "pkg/nri/host/stage/nri_stage.h"
#include "pkg/sys/lifetime.h"

namespace resmgr::nri {
namespace {

class CreateCall final : public StageCall {
 public:
  explicit CreateCall(NriStage& stage) : StageCall(stage), stage_(stage) {}
  ~CreateCall() override { Undo(); }

  void Before(Request& request, const Adjustment& so_far) override {
    if (stage_.view().inventory().ready()) return Decide(request, so_far);
    DecideAfterRefresh(request, so_far);
  }

  void RollBack() override { Undo(); }
  std::string PluginOf(const FieldChange& change) const override {
    return creation_ == nullptr ? std::string() : creation_->PluginOf(change);
  }
  std::vector<std::string> LeftOut() const override {
    return creation_ == nullptr ? std::vector<std::string>() : creation_->left_out();
  }

  void After(Request&, const Outcome& outcome) override {
    const std::shared_ptr<Creation> creation = std::exchange(creation_, nullptr);
    const bool unclear = outcome.unclear() || (outcome.ok() && outcome.id.empty());
    if (creation == nullptr) {
      // Another client created the unknown sandbox; a list will find it.
      if (unclear || outcome.ok()) stage_.view().inventory().Refresh();
    } else if (unclear) {
      creation->Clarify();
    } else if (outcome.ok()) {
      creation->Succeed(ContainerId(outcome.id), std::make_shared<ReplyHold>(HoldReply()));
    } else {
      if (creation->RefusedWithoutRdt(outcome.message)) stage_.NoteWithoutRdt();
      creation->Undo();
    }
  }

 private:
  void DecideAfterRefresh(Request& request, const Adjustment& so_far) {
    refreshed_ = true;
    stage_.view().AfterRefresh(lifetime_.Guard([this, &request, &so_far](const Status& status) {
      if (!status.ok()) return Refuse(Annotate(status, "the runtime's pods are not known"));
      Decide(request, so_far);
    }));
  }

  void Decide(Request& request, const Adjustment& so_far) {
    const CreateRequest* const create = request.create();
    if (create == nullptr) return Pass();
    const HostPodPtr pod = stage_.view().FindPod(create->pod_id.value());
    if (pod == nullptr && !refreshed_) return DecideAfterRefresh(request, so_far);
    if (Status required = stage_.CheckRequired(pod.get(), create->name); !required.ok()) {
      return Refuse(std::move(required));
    }
    // Passes the call: the runtime itself refuses it.
    if (pod == nullptr || !pod->ready) return Pass();
    CreateRequest shown = *create;
    shown.pod_id = PodSandboxId(pod->message->id());
    Overlay(so_far, shown);
    auto planned = std::make_shared<PlannedContainer>(
        pod, std::move(shown), Overlaid(so_far, request.KeepDetails(kAllDetails)));
    creation_ = std::make_shared<Creation>(stage_, std::move(planned), pod);
    const auto answer = std::make_shared<LateAnswer>(AnswerLater());
    creation_->Begin([answer](StatusOr<Adjustment> adjustment) {
      if (adjustment.ok()) {
        answer->Adjust(*std::move(adjustment));
      } else {
        answer->Refuse(adjustment.status());
      }
    });
  }

  void Undo() {
    if (const auto creation = std::exchange(creation_, nullptr)) creation->Undo();
  }

  NriStage& stage_;
  std::shared_ptr<Creation> creation_;
  bool refreshed_ = false;
  Lifetime lifetime_;
};

}  // namespace

Creation::Creation(NriStage& stage, std::shared_ptr<PlannedContainer> planned,
                   const HostPodPtr& pod)
    : stage_(stage),
      planned_(std::move(planned)),
      container_(stage.view().Begin(pod, Utf8Repaired(planned_->create().name),
                                    planned_->create().attempt)),
      traits_(stage.traits(*pod)),
      budget_(stage.NewBudget()) {
  planned_->SetId(container_->alias);
  container_->message.SetLater([planned = planned_] { return planned->Make(); });
}

void Creation::Begin(Done done) {
  done_ = std::move(done);
  const Dispatcher& dispatcher = stage_.dispatcher();
  if (!dispatcher.AnyWants(api::EVENT_CREATE_CONTAINER) &&
      !dispatcher.AnyWants(api::EVENT_VALIDATE_CONTAINER_ADJUSTMENT) && !stage_.validator()) {
    return Answer(Adjustment());
  }
  stage_.InTurn(*container_->pod, [self = shared_from_this()](const Turns::Turn& turn) {
    self->stage_.images().Find(PodSandboxId(self->container_->pod->message->id()),
                               self->planned_->details().image,
                               [self, turn](const ImageFacts* image) {
                                 if (image != nullptr) self->ShowImage(*image);
                                 self->AskPlugins(turn);
                               });
  });
}

void Creation::ShowImage(const ImageFacts& image) {
  planned_->SetImage(image);
  container_->message.SetLater([planned = planned_] { return planned->Make(); });
}

void Creation::AskPlugins(const Turns::Turn& turn) {
  if (abandoned_) return;
  merge_.emplace(planned_);
  const auto ask = [self = shared_from_this()](HostedPlugin& plugin,
                                               std::chrono::milliseconds timeout,
                                               Dispatcher::Answered answered) {
    self->AskPlugin(plugin, timeout, std::move(answered));
  };
  stage_.dispatcher().InTurn(stage_.RequestKind(*container_->pod, planned_->create().name),
                             stage_.dispatcher().Wanting(api::EVENT_CREATE_CONTAINER), budget_, ask,
                             [self = shared_from_this(), turn](const Status& refusal) {
                               if (!refusal.ok()) return self->Answer(refusal);
                               self->Validate(turn);
                             });
}

void Creation::AskPlugin(HostedPlugin& plugin, std::chrono::milliseconds timeout,
                         Dispatcher::Answered answered) {
  // The client has gone away, so no further plugin is asked.
  if (abandoned_) return answered(MakeStatus(StatusCode::kCancelled, "the client went away"));
  container_->told = true;
  plugin.port->Ask<api::CreateContainerResponse>(
      api::EVENT_CREATE_CONTAINER, merge_->Question(), timeout,
      [self = shared_from_this(), name = plugin.name,
       answered = std::move(answered)](StatusOr<api::CreateContainerResponse> answer) {
        if (!answer.ok()) return answered(answer.status());
        self->stage_.updates().Normalize(*answer->mutable_update());
        self->consulted_.push_back(name);
        answered(self->merge_->Add(name, *std::move(answer)));
      });
}

Status Creation::RunDefaultValidator() const {
  if (!stage_.validator()) return OkStatus();
  const api::Container outline = merge_->pristine().MakeOutline();
  std::vector<std::string> present = consulted_;
  for (const auto& plugin : stage_.dispatcher().plugins())
    if (!plugin->port->Wants(api::EVENT_CREATE_CONTAINER)) present.push_back(plugin->name);
  return stage_.validator()->Check({.pod = merge_->pristine().pod(),
                                    .container = outline,
                                    .adjustment = merge_->adjustment(),
                                    .owners = [this] { return merge_->owners(); }},
                                   present);
}

void Creation::Validate(const Turns::Turn& turn) {
  if (abandoned_) return;
  if (const Status valid = RunDefaultValidator(); !valid.ok()) return Answer(valid);
  const HostedPlugins validators =
      stage_.dispatcher().Wanting(api::EVENT_VALIDATE_CONTAINER_ADJUSTMENT);
  if (validators.empty()) return Map(turn);
  const auto request =
      std::make_shared<api::ValidateContainerAdjustmentRequest>(merge_->Validation());
  for (const std::string& name : consulted_) {
    api::PluginInstance& plugin = *request->add_plugins();
    plugin.set_index(name.substr(0, name.find('-')));
    plugin.set_name(name.substr(name.find('-') + 1));
  }
  // The plugin is not at fault, so it stays connected.
  if (request->ByteSizeLong() > QuestionQueue::kLongestQuestion) {
    return Answer(ResourceExhausted(
        "NRI plugin {} cannot validate the container: what describes it has more bytes than NRI "
        "can carry, {}",
        validators.front()->name, request->ByteSizeLong()));
  }
  const auto ask = [request](HostedPlugin& plugin, std::chrono::milliseconds timeout,
                             Dispatcher::Answered answered) {
    plugin.port->Ask<api::ValidateContainerAdjustmentResponse>(
        api::EVENT_VALIDATE_CONTAINER_ADJUSTMENT, request->SerializeAsString(), timeout,
        [answered = std::move(answered)](
            const StatusOr<api::ValidateContainerAdjustmentResponse>& answer) {
          if (!answer.ok()) return answered(answer.status());
          answered(answer->reject() ? FailedPrecondition("rejected: {}", answer->reason())
                                    : OkStatus());
        });
  };
  stage_.dispatcher().Together(validators, budget_, ask,
                               [self = shared_from_this(), turn](const Status& refusal) {
                                 if (!refusal.ok()) return self->Answer(refusal);
                                 self->Map(turn);
                               });
}

void Creation::Map(const Turns::Turn& turn) {
  if (abandoned_) return;
  owners_ = merge_->owned(container_->alias);
  StatusOr<MappedAdjustment> mapped = MapAdjustment(merge_->adjustment(), Context());
  if (!mapped.ok()) return Answer(mapped.status());
  if (mapped->host_files.empty()) return UpdateOthers(*std::move(mapped), turn);
  FindFiles(*std::move(mapped), turn);
}

MappingContext Creation::Context() const {
  return {.details = planned_->details(),
          .pristine = merge_->pristine(),
          .owners = owners_,
          .policy = stage_.nri_options().unsupported,
          .traits = traits_};
}

void Creation::FindFiles(MappedAdjustment mapped, const Turns::Turn& turn) {
  const auto whole = std::make_shared<MappedAdjustment>(std::move(mapped));
  const auto found = [self = shared_from_this(), whole, turn](const StatusOr<FoundFiles>& files) {
    if (files.ok()) self->files_ = *files;
    if (self->abandoned_) return self->ForgetFiles();
    if (!files.ok()) return self->Answer(files.status());
    if (Status added = AddHostFiles(*files, self->Context(), *whole); !added.ok()) {
      return self->Answer(std::move(added));
    }
    self->UpdateOthers(std::move(*whole), turn);
  };
  stage_.files().Ask(whole->host_files, container_->alias,
                     stage_.WhileHere<StatusOr<FoundFiles>>(found));
}

void Creation::ForgetFiles() {
  if (files_) stage_.files().Forget(*files_);
  files_.reset();
}

void Creation::UpdateOthers(MappedAdjustment mapped, const Turns::Turn& turn) {
  stage_.NoteLeftOut(*container_, mapped.warnings);
  left_out_ = std::move(mapped.warnings);
  if (const WideAdjustment* const wide = mapped.adjustment.wide(); wide != nullptr) {
    sent_class_ = wide->rdt_class.value_or("");
  }
  const auto whole = std::make_shared<Adjustment>(std::move(mapped.adjustment));
  // A failed update is only logged, as in the runtimes' own NRI hosts.
  stage_.updates().Apply(merge_->updates(),
                         [self = shared_from_this(), whole, turn](const PluginUpdates::List&) {
                           self->Answer(std::move(*whole));
                         });
}

void Creation::Answer(StatusOr<Adjustment> answer) {
  if (!answer.ok()) Undo();
  if (done_) std::exchange(done_, nullptr)(std::move(answer));
}

void Creation::Adopt() {
  ForgetFiles();
  if (!merge_) return;
  const bool owned = stage_.PlacementIsOwned();
  container_->message.SetLater([shown = merge_->shown(), planned = planned_, owned] {
    api::Container changed = std::move(*shown->Message().mutable_container());
    if (owned) {
      const LinuxResources& decided = planned->create().resources;
      api::LinuxResources& resources = *changed.mutable_linux()->mutable_resources();
      LeaveOutPlacement(resources);
      api::LinuxCPU& cpu = *resources.mutable_cpu();
      cpu.set_cpus(Utf8Repaired(decided.cpuset_cpus.value_or("")));
      cpu.set_mems(Utf8Repaired(decided.cpuset_mems.value_or("")));
    }
    return changed;
  });
  merge_.reset();
}

void Creation::Succeed(const ContainerId& id, const SharedHold& hold) {
  Adopt();
  container_->SetState(api::CONTAINER_CREATED);
  stage_.view().SetId(container_, id);
  if (!stage_.dispatcher().AnyWants(api::EVENT_POST_CREATE_CONTAINER)) return hold->Release();
  stage_.InTurn(*container_->pod, [self = shared_from_this(), hold](const Turns::Turn& turn) {
    const HostContainerPtr& container = self->container_;
    container->told = true;
    self->stage_.events().Tell(api::EVENT_POST_CREATE_CONTAINER, container->pod, container,
                               self->budget_, [hold, turn](const Status&) { hold->Release(); });
  });
}

void Creation::Undo() {
  if (std::exchange(abandoned_, true)) return;
  ForgetFiles();
  stage_.InTurn(*container_->pod, [self = shared_from_this()](const Turns::Turn& turn) {
    HostEvents& events = self->stage_.events();
    events.Remove(self->container_, events.NewBudget(), [turn](const Status&) {});
  });
}

bool Creation::RefusedWithoutRdt(std::string_view message) const {
  return !sent_class_.empty() && SaysWithoutRdt(message, planned_->create().name, sent_class_);
}

void Creation::Clarify() {
  if (std::exchange(abandoned_, true)) return;
  Adopt();
  stage_.view().AfterRefresh([self = shared_from_this()](const Status& status) {
    self->abandoned_ = false;
    // A failed list is repeated. A list that has the container has set its id; without an id it was
    // not created.
    if (!status.ok()) return self->Clarify();
    if (self->container_->creating()) self->Undo();
  });
}

std::unique_ptr<StageCall> MakeCreateCall(NriStage& stage) {
  return std::make_unique<CreateCall>(stage);
}

}  // namespace resmgr::nri
