// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "pkg/docker/container_body.h"
#include "pkg/docker/docker_front.h"
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
  // An empty list in an update means no change.
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
  std::optional<PipelineCall> call_;  // gone before the request
  Lifetime lifetime_;
};

}  // namespace resmgr::docker
