// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/cpus_watch.h"

#include "pkg/node/node_cpus.h"

namespace resmgr {

void CpusWatch::Note() {
  if (timer_ != nullptr || host_ == nullptr) return;
  timer_ = loop_.After(period_, [this] { Look(); });
}

void CpusWatch::Look() {
  timer_.reset();
  if (host_ == nullptr) return;
  const ResourceManager* const manager = host_->manager();
  if (manager == nullptr) return tell_("");
  if (!manager->ready()) return Note();
  tell_(ToJson(CpusByNumaNode(machine_, manager->policy(), manager->snapshot())));
}

}  // namespace resmgr
