// Parameters of each method that needs some. For codec_test.cpp.
#pragma once

#include "proto/methods.h"

namespace gpurota::proto {
namespace {

template <class Method>
const char* sample_text() {
  return "{}";
}
template <>
const char* sample_text<Acquire>() {
  return R"({"request":{"gpus":2,"memory":{"bytes":8},"soft_limit":{"percent":50},)"
         R"("note":"n","command":["a"]}})";
}
template <>
const char* sample_text<Start>() {
  return R"({"lease_id":"L3","pid":7})";
}
template <>
const char* sample_text<Hold>() {
  return R"({"lease_id":"L3"})";
}
template <>
const char* sample_text<Park>() {
  return R"({"lease_id":"L12"})";
}
template <>
const char* sample_text<Unpark>() {
  return R"({"lease_id":"L12"})";
}
template <>
const char* sample_text<Events>() {
  return R"({"since":"2026-11-21T01:19:32.125Z","lease_id":"L3","follow":true})";
}
template <>
const char* sample_text<Report>() {
  return R"({"since":"2026-11-21T01:19:32.125Z","by":"gpu"})";
}
template <>
const char* sample_text<Release>() {
  return R"({"gpu_ids":["0","GPU-1"]})";
}
template <>
const char* sample_text<Update>() {
  return R"({"lease_id":"L3","note":""})";
}
template <>
const char* sample_text<Enqueue>() {
  return R"({"ticket":"0af3","request":)"
         R"({"kind":"reservation","gpus":2,"seconds":1800,"take_over":true}})";
}
template <>
const char* sample_text<CheckRequest>() {
  return R"({"uid":1000,"request":{"memory":{"bytes":8},"seconds":60,"swap":true,)"
         R"("priority":-10,"quantum":"5s"}})";
}
template <>
const char* sample_text<GetEnvironment>() {
  return R"({"lease_id":"L3"})";
}
template <>
const char* sample_text<Cancel>() {
  return R"({"request_id":"R7"})";
}
template <>
const char* sample_text<Claim>() {
  return R"({"request_id":"R16"})";
}
template <>
const char* sample_text<Book>() {
  return R"({"begins":["2026-11-30T09:00:00Z"],"request":{"kind":"reservation","seconds":3600}})";
}
template <>
const char* sample_text<Drain>() {
  return R"({"gpu_ids":["0"],"reason":"fan"})";
}
template <>
const char* sample_text<Undrain>() {
  return R"({"gpu_ids":["0"]})";
}
template <>
const char* sample_text<SetGpus>() {
  return R"({"gpu_ids":["0"],"capacity":{"percent":80},"quantum":"5s","turns":"on"})";
}
template <>
const char* sample_text<AddFiller>() {
  return R"({"name":"fold","command":["./fold"],"environment":[],"memory":{"percent":88},)"
         R"("gpu_ids":["1"],"idle_seconds":30})";
}
template <>
const char* sample_text<ControlFiller>() {
  return R"({"name":"fold","action":"pause","user":"alice","reason":"fan"})";
}
template <>
const char* sample_text<ReadFillerLog>() {
  return R"({"name":"fold","bytes":1000})";
}
template <>
const char* sample_text<AddJob>() {
  return R"({"name":"web","command":["./a.out"],"options":["--memory","8G"],)"
         R"("environment":[{"name":"A","value":"b"}]})";
}
template <>
const char* sample_text<ListJobItems>() {
  return R"({"name":"sweep","from":7,"most":2,"begun":true})";
}
template <>
const char* sample_text<ControlJob>() {
  return R"({"name":"web","action":"stop","user":"alice","reason":"fan"})";
}
template <>
const char* sample_text<UpdateJob>() {
  return R"({"name":"web","options":["--memory","8G"],"memory":{"bytes":8},"seconds":60,)"
         R"("priority":-10,"quantum":"5s","reason":"fan"})";
}
template <>
const char* sample_text<ApplyJobs>() {
  return R"({"jobs":[{"name":"web","command":["x"],"options":[],"workdir":"/","environment":[],)"
         R"("variables":["A"],"restart":"no","after":["db"],"start":false}]})";
}
template <>
const char* sample_text<ReadJobLog>() {
  return R"({"name":"web","bytes":1000,"cursor":"1:2"})";
}
template <>
const char* sample_text<ListTurns>() {
  return R"({"gpu_ids":["0"]})";
}
template <>
const char* sample_text<AcquireForPod>() {
  return R"({"allocation":"kube-1","token":"00112233445566778899aabbccddeeff",)"
         R"("request":{"memory":{"bytes":8}},)"
         R"("pod":{"namespace":"lab","name":"train","container":"main"},)"
         R"("pod_uid":"1b4e-7"})";
}
template <>
const char* sample_text<ServeWeb>() {
  return R"({"url":"http://127.0.0.1:9836/"})";
}
template <>
const char* sample_text<GetWebLink>() {
  return R"({"secret":"1.0af3"})";
}
template <>
const char* sample_text<SignIn>() {
  return R"({"secret":"1.0af3","from":"127.0.0.1"})";
}
template <>
const char* sample_text<SignInByProxy>() {
  return R"({"uid":1000})";
}
template <>
const char* sample_text<InterfaceDescription>() {
  return R"({"interface":"dev.gpurota"})";
}

}  // namespace
}  // namespace gpurota::proto
