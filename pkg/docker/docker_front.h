// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "pkg/docker/docker_labels.h"
#include "pkg/docker/engine_client.h"
#include "pkg/docker/engine_inventory.h"
#include "pkg/docker/interception.h"
#include "pkg/model/container.h"
#include "pkg/pipeline/pipeline.h"
#include "pkg/sys/event_loop.h"

namespace resmgr::docker {

// The Docker API as a front door: requests that create, start, update, stop, kill or remove pod
// sandboxes and containers of pods are calls of the pipeline, and its decisions are written into
// their bodies. Containers outside pods pass, or are placed as those of one pod (Others::kShare).
// Loop's thread only.
//
// Not intercepted: a kill by another signal than SIGKILL, the stop of a restart and the end of a
// wait. The daemon learns of these by dockerd's events.
class DockerFront final : public Interceptor {
 public:
  // The number of containers whose kind is remembered. Any other container is inspected first.
  static constexpr size_t kMaxKnown = 20'000;

  DockerFront(EventLoop& loop, Pipeline& pipeline, const std::string& engine_socket, Others others);

  std::unique_ptr<Interception> Begin(std::string_view method, std::string_view target,
                                      Interception::Client& client) override;

  // The calls use the following functions.
  Pipeline& pipeline() { return pipeline_; }
  // For look-ups: one that hangs delays no other client's.
  EngineClient& engine() { return engine_; }
  Others others() const { return others_; }
  void Learn(std::string_view id, Identity::Kind kind);
  void Forget(std::string_view id) { known_.erase(std::string(id)); }
  // A unique name for a container outside pods that has none.
  std::string MakeName() { return PlaceholderName(++names_); }
  // Looks up the kind by a whole id. nullopt: not known.
  std::optional<Identity::Kind> KindOf(std::string_view id) const;

 private:
  Pipeline& pipeline_;
  const Others others_;
  uint64_t names_ = 0;
  EngineClient engine_;
  std::unordered_map<std::string, Identity::Kind> known_;
};

}  // namespace resmgr::docker
