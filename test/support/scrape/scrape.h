// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace resmgr::test {

// What an HTTP server at this port of 127.0.0.1 answers to GET, headers included; "" when there is
// no listener.
std::string Scrape(int port, const std::string& path = "/metrics");

}  // namespace resmgr::test
