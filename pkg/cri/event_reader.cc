// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/event_reader.h"

#include <utility>

#include "pkg/cri/messages.h"

namespace resmgr {

EventReader::EventReader(std::function<void(const ContainerEvent&)> on_event)
    : messages_(kMost, [on_event = std::move(on_event)](const GrpcMessage& message) {
        if (message.compressed || message.truncated()) return on_event({});
        on_event(DecodeContainerEvent(message.payload).value_or(ContainerEvent()));
      }) {}

}  // namespace resmgr
