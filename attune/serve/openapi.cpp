#include "attune/serve/openapi.h"

namespace attune::serve {

// clang-format off
std::string_view openapi_document() {
  return R"json({
"openapi": "3.0.3",
"info": {"title": "Attune", "version": "1", "description": "Translation, generation, classification and embeddings over HTTP; see docs/serving.md."},
"security": [{"key": []}],
"paths": {
 "/health": {"get": {
  "summary": "Whether the process answers",
  "tags": ["operation"],
  "responses": {
   "200": {"description": "The answer", "content": {"application/json": {"schema": {"type": "object", "properties": {"status": {"type": "string"}}, "required": ["status"]}}}}},
  "security": []
 }},
 "/ready": {"get": {
  "summary": "Whether requests are taken",
  "tags": ["operation"],
  "responses": {
   "200": {"description": "The answer", "content": {"application/json": {"schema": {"type": "object", "properties": {"status": {"type": "string"}}, "required": ["status"]}}}},
   "503": {"description": "Loading or stopping; see Retry-After", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}}},
  "security": []
 }},
 "/metrics": {"get": {
  "summary": "Numbers in Prometheus' text format",
  "tags": ["operation"],
  "responses": {
   "200": {"description": "The answer", "content": {"text/plain": {"schema": {"type": "string"}}}}},
  "security": []
 }},
 "/openapi.json": {"get": {
  "summary": "This document",
  "tags": ["operation"],
  "responses": {
   "200": {"description": "The answer", "content": {"application/json": {"schema": {"type": "object"}}}}},
  "security": []
 }},
 "/admin/reload": {"post": {
  "summary": "Loads models again whose folders have changed",
  "tags": ["operation"],
  "responses": {
   "200": {"description": "It will be done", "content": {"application/json": {"schema": {"type": "object", "properties": {"status": {"type": "string"}}, "required": ["status"]}}}},
   "401": {"description": "The API key is missing or not known", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/OpenAIError"}}}},
   "403": {"description": "The API key may not do that", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/OpenAIError"}}}},
   "503": {"description": "Loading or stopping; see Retry-After", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/OpenAIError"}}}}}
 }},
 "/v1/models": {"get": {
  "summary": "The models",
  "tags": ["language models"],
  "responses": {
   "200": {"description": "The answer", "content": {"application/json": {"schema": {"type": "object", "properties": {"object": {"type": "string"}, "data": {"type": "array", "items": {"type": "object", "properties": {"id": {"type": "string"}, "object": {"type": "string"}, "created": {"type": "integer"}, "owned_by": {"type": "string"}}, "required": ["id", "object", "created", "owned_by"]}}}, "required": ["object", "data"]}}}},
   "401": {"description": "The API key is missing or not known", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/OpenAIError"}}}},
   "503": {"description": "Loading or stopping; see Retry-After", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/OpenAIError"}}}}}
 }},
 "/translate": {"post": {
  "summary": "Translates (LibreTranslate)",
  "tags": ["translation"],
  "parameters": [{"$ref": "#/components/parameters/Timeout"}],
  "requestBody": {"required": true, "content": {"application/json": {"schema": {"type": "object", "properties": {"q": {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}, "source": {"type": "string"}, "target": {"type": "string"}, "format": {"type": "string", "enum": ["text", "html"]}, "alternatives": {"type": "integer", "minimum": 0}, "api_key": {"type": "string"}, "timeout": {"type": "number"}}, "required": ["q", "source", "target"], "additionalProperties": false}}, "application/x-www-form-urlencoded": {"schema": {"type": "object", "properties": {"q": {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}, "source": {"type": "string"}, "target": {"type": "string"}, "format": {"type": "string", "enum": ["text", "html"]}, "alternatives": {"type": "integer", "minimum": 0}, "api_key": {"type": "string"}, "timeout": {"type": "number"}}, "required": ["q", "source", "target"], "additionalProperties": false}}, "multipart/form-data": {"schema": {"type": "object", "properties": {"q": {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}, "source": {"type": "string"}, "target": {"type": "string"}, "format": {"type": "string", "enum": ["text", "html"]}, "alternatives": {"type": "integer", "minimum": 0}, "api_key": {"type": "string"}, "timeout": {"type": "number"}}, "required": ["q", "source", "target"], "additionalProperties": false}}}},
  "responses": {
   "200": {"description": "The answer", "content": {"application/json": {"schema": {"type": "object", "properties": {"translatedText": {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}, "alternatives": {"type": "array", "items": {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}}, "detectedLanguage": {"oneOf": [{"$ref": "#/components/schemas/Detected"}, {"type": "array", "items": {"$ref": "#/components/schemas/Detected"}}]}}, "required": ["translatedText"]}}}},
   "400": {"description": "What is wrong, with the field's name", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}},
   "401": {"description": "The API key is missing or not known", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}},
   "404": {"description": "There is no such model", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}},
   "413": {"description": "The text or the body is too long", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}},
   "415": {"description": "The body has another type", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}},
   "429": {"description": "Too many requests; see Retry-After", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}},
   "500": {"description": "The server's own failure", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}},
   "503": {"description": "Loading or stopping; see Retry-After", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}},
   "504": {"description": "The time for the request is over", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}},
   "501": {"description": "Not built in", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}}}
 }},
 "/detect": {"post": {
  "summary": "The language of a text (LibreTranslate)",
  "tags": ["translation"],
  "parameters": [{"$ref": "#/components/parameters/Timeout"}],
  "requestBody": {"required": true, "content": {"application/json": {"schema": {"type": "object", "properties": {"q": {"type": "string"}, "api_key": {"type": "string"}}, "required": ["q"], "additionalProperties": false}}, "application/x-www-form-urlencoded": {"schema": {"type": "object", "properties": {"q": {"type": "string"}, "api_key": {"type": "string"}}, "required": ["q"], "additionalProperties": false}}, "multipart/form-data": {"schema": {"type": "object", "properties": {"q": {"type": "string"}, "api_key": {"type": "string"}}, "required": ["q"], "additionalProperties": false}}}},
  "responses": {
   "200": {"description": "The answer", "content": {"application/json": {"schema": {"type": "array", "items": {"$ref": "#/components/schemas/Detected"}}}}},
   "400": {"description": "What is wrong, with the field's name", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}},
   "401": {"description": "The API key is missing or not known", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}},
   "404": {"description": "There is no such model", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}},
   "413": {"description": "The text or the body is too long", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}},
   "415": {"description": "The body has another type", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}},
   "429": {"description": "Too many requests; see Retry-After", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}},
   "500": {"description": "The server's own failure", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}},
   "503": {"description": "Loading or stopping; see Retry-After", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}},
   "504": {"description": "The time for the request is over", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}},
   "501": {"description": "Not built in", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}}}
 }},
 "/languages": {"get": {
  "summary": "The languages (LibreTranslate)",
  "tags": ["translation"],
  "responses": {
   "200": {"description": "The answer", "content": {"application/json": {"schema": {"type": "array", "items": {"type": "object", "properties": {"code": {"type": "string"}, "name": {"type": "string"}, "targets": {"type": "array", "items": {"type": "string"}}}, "required": ["code", "name", "targets"]}}}}}},
  "security": []
 }},
 "/frontend/settings": {"get": {
  "summary": "What clients should know (LibreTranslate)",
  "tags": ["translation"],
  "responses": {
   "200": {"description": "The answer", "content": {"application/json": {"schema": {"type": "object"}}}}},
  "security": []
 }},
 "/v1/translate": {"post": {
  "summary": "Translates, with scores, alignments and constraints",
  "tags": ["translation"],
  "parameters": [{"$ref": "#/components/parameters/Timeout"}],
  "requestBody": {"required": true, "content": {"application/json": {"schema": {"type": "object", "properties": {"model": {"type": "string"}, "source": {"type": "string"}, "target": {"type": "string"}, "text": {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}, "n_best": {"type": "integer", "minimum": 1}, "beam_size": {"type": "integer", "minimum": 1}, "length_penalty": {"type": "number", "minimum": -100, "maximum": 100}, "max_length": {"type": "integer", "minimum": 1}, "no_repeat_ngram_size": {"type": "integer", "minimum": 0}, "alignments": {"type": "boolean"}, "required": {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}, "banned": {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}, "prefix": {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}, "split": {"type": "boolean"}, "stream": {"type": "boolean"}, "timeout": {"type": "number"}}, "required": ["text"], "additionalProperties": false}}}},
  "responses": {
   "200": {"description": "The answer", "content": {"application/json": {"schema": {"type": "object", "properties": {"model": {"type": "string"}, "translations": {"type": "array", "items": {"type": "object", "properties": {"text": {"type": "string"}, "sentences": {"type": "array", "items": {"$ref": "#/components/schemas/Sentence"}}}, "required": ["text", "sentences"]}}}, "required": ["model", "translations"]}}, "text/event-stream": {"schema": {"type": "string"}}}},
   "400": {"description": "What is wrong, with the field's name", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/OpenAIError"}}}},
   "401": {"description": "The API key is missing or not known", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/OpenAIError"}}}},
   "404": {"description": "There is no such model", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/OpenAIError"}}}},
   "413": {"description": "The text or the body is too long", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/OpenAIError"}}}},
   "415": {"description": "The body has another type", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/OpenAIError"}}}},
   "429": {"description": "Too many requests; see Retry-After", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/OpenAIError"}}}},
   "500": {"description": "The server's own failure", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/OpenAIError"}}}},
   "503": {"description": "Loading or stopping; see Retry-After", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/OpenAIError"}}}},
   "504": {"description": "The time for the request is over", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/OpenAIError"}}}}}
 }},
 "/v1/completions": {"post": {
  "summary": "Continues prompts (OpenAI)",
  "tags": ["language models"],
  "parameters": [{"$ref": "#/components/parameters/Timeout"}],
  "requestBody": {"required": true, "content": {"application/json": {"schema": {"type": "object", "properties": {"model": {"type": "string"}, "temperature": {"type": "number", "minimum": 0, "maximum": 100}, "top_p": {"type": "number", "minimum": 0, "maximum": 1}, "top_k": {"type": "integer", "minimum": 0}, "min_p": {"type": "number", "minimum": 0, "maximum": 1}, "repetition_penalty": {"type": "number", "minimum": 0.01, "maximum": 100}, "seed": {"type": "integer", "minimum": 0}, "n": {"type": "integer", "minimum": 1}, "stop": {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}, "stream": {"type": "boolean"}, "stream_options": {"type": "object", "properties": {"include_usage": {"type": "boolean"}}, "additionalProperties": false}, "max_tokens": {"type": "integer", "minimum": 1}, "timeout": {"type": "number"}, "prompt": {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}, {"type": "array", "items": {"type": "integer"}}, {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}}]}, "logprobs": {"type": "integer", "minimum": 0, "maximum": 5}, "echo": {"type": "boolean"}, "best_of": {"type": "integer"}, "suffix": {"type": "string", "nullable": true}, "frequency_penalty": {"type": "number"}, "presence_penalty": {"type": "number"}, "logit_bias": {"type": "object"}, "user": {"type": "string"}}, "required": ["prompt"]}}}},
  "responses": {
   "200": {"description": "The answer", "content": {"application/json": {"schema": {"type": "object", "properties": {"id": {"type": "string"}, "object": {"type": "string"}, "created": {"type": "integer"}, "model": {"type": "string"}, "choices": {"type": "array", "items": {"type": "object", "properties": {"index": {"type": "integer"}, "text": {"type": "string"}, "logprobs": {"type": "object", "nullable": true}, "finish_reason": {"type": "string", "nullable": true}}, "required": ["index", "text", "finish_reason"]}}, "usage": {"type": "object", "properties": {"prompt_tokens": {"type": "integer"}, "completion_tokens": {"type": "integer"}, "total_tokens": {"type": "integer"}}, "required": ["prompt_tokens", "total_tokens"]}}, "required": ["id", "object", "created", "model", "choices"]}}, "text/event-stream": {"schema": {"type": "string"}}}},
   "400": {"description": "What is wrong, with the field's name", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/OpenAIError"}}}},
   "401": {"description": "The API key is missing or not known", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/OpenAIError"}}}},
   "404": {"description": "There is no such model", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/OpenAIError"}}}},
   "413": {"description": "The text or the body is too long", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/OpenAIError"}}}},
   "415": {"description": "The body has another type", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/OpenAIError"}}}},
   "429": {"description": "Too many requests; see Retry-After", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/OpenAIError"}}}},
   "500": {"description": "The server's own failure", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/OpenAIError"}}}},
   "503": {"description": "Loading or stopping; see Retry-After", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/OpenAIError"}}}},
   "504": {"description": "The time for the request is over", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/OpenAIError"}}}}}
 }},
 "/v1/chat/completions": {"post": {
  "summary": "Continues a conversation by the template of the model's folder (OpenAI)",
  "tags": ["language models"],
  "parameters": [{"$ref": "#/components/parameters/Timeout"}],
  "requestBody": {"required": true, "content": {"application/json": {"schema": {"type": "object", "properties": {"model": {"type": "string"}, "temperature": {"type": "number", "minimum": 0, "maximum": 100}, "top_p": {"type": "number", "minimum": 0, "maximum": 1}, "top_k": {"type": "integer", "minimum": 0}, "min_p": {"type": "number", "minimum": 0, "maximum": 1}, "repetition_penalty": {"type": "number", "minimum": 0.01, "maximum": 100}, "seed": {"type": "integer", "minimum": 0}, "n": {"type": "integer", "minimum": 1}, "stop": {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}, "stream": {"type": "boolean"}, "stream_options": {"type": "object", "properties": {"include_usage": {"type": "boolean"}}, "additionalProperties": false}, "max_tokens": {"type": "integer", "minimum": 1}, "timeout": {"type": "number"}, "messages": {"type": "array", "items": {"type": "object", "properties": {"role": {"type": "string"}, "content": {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "object", "properties": {"type": {"type": "string"}, "text": {"type": "string"}}}}]}, "name": {"type": "string"}}, "required": ["role"]}}, "max_completion_tokens": {"type": "integer", "minimum": 1}, "logprobs": {"type": "boolean"}, "top_logprobs": {"type": "integer", "minimum": 0, "maximum": 20}, "user": {"type": "string"}}, "required": ["messages"]}}}},
  "responses": {
   "200": {"description": "The answer", "content": {"application/json": {"schema": {"type": "object", "properties": {"id": {"type": "string"}, "object": {"type": "string"}, "created": {"type": "integer"}, "model": {"type": "string"}, "choices": {"type": "array", "items": {"type": "object", "properties": {"index": {"type": "integer"}, "message": {"type": "object", "properties": {"role": {"type": "string"}, "content": {"type": "string"}}, "required": ["role", "content"]}, "logprobs": {"type": "object", "nullable": true}, "finish_reason": {"type": "string", "nullable": true}}, "required": ["index", "message", "finish_reason"]}}, "usage": {"type": "object", "properties": {"prompt_tokens": {"type": "integer"}, "completion_tokens": {"type": "integer"}, "total_tokens": {"type": "integer"}}, "required": ["prompt_tokens", "total_tokens"]}}, "required": ["id", "object", "created", "model", "choices"]}}, "text/event-stream": {"schema": {"type": "string"}}}},
   "400": {"description": "What is wrong, with the field's name", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/OpenAIError"}}}},
   "401": {"description": "The API key is missing or not known", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/OpenAIError"}}}},
   "404": {"description": "There is no such model", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/OpenAIError"}}}},
   "413": {"description": "The text or the body is too long", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/OpenAIError"}}}},
   "415": {"description": "The body has another type", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/OpenAIError"}}}},
   "429": {"description": "Too many requests; see Retry-After", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/OpenAIError"}}}},
   "500": {"description": "The server's own failure", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/OpenAIError"}}}},
   "503": {"description": "Loading or stopping; see Retry-After", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/OpenAIError"}}}},
   "504": {"description": "The time for the request is over", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/OpenAIError"}}}}}
 }},
 "/v1/embeddings": {"post": {
  "summary": "Vectors of texts (OpenAI)",
  "tags": ["embeddings"],
  "parameters": [{"$ref": "#/components/parameters/Timeout"}],
  "requestBody": {"required": true, "content": {"application/json": {"schema": {"type": "object", "properties": {"model": {"type": "string"}, "input": {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}, "encoding_format": {"type": "string", "enum": ["float", "base64"]}, "dimensions": {"type": "integer", "minimum": 1}, "user": {"type": "string"}, "timeout": {"type": "number"}}, "required": ["input"], "additionalProperties": false}}}},
  "responses": {
   "200": {"description": "The answer", "content": {"application/json": {"schema": {"type": "object", "properties": {"object": {"type": "string"}, "model": {"type": "string"}, "data": {"type": "array", "items": {"type": "object", "properties": {"object": {"type": "string"}, "index": {"type": "integer"}, "embedding": {"oneOf": [{"type": "array", "items": {"type": "number"}}, {"type": "string"}]}}, "required": ["object", "index", "embedding"]}}, "usage": {"type": "object", "properties": {"prompt_tokens": {"type": "integer"}, "completion_tokens": {"type": "integer"}, "total_tokens": {"type": "integer"}}, "required": ["prompt_tokens", "total_tokens"]}}, "required": ["object", "data", "model", "usage"]}}}},
   "400": {"description": "What is wrong, with the field's name", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/OpenAIError"}}}},
   "401": {"description": "The API key is missing or not known", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/OpenAIError"}}}},
   "404": {"description": "There is no such model", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/OpenAIError"}}}},
   "413": {"description": "The text or the body is too long", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/OpenAIError"}}}},
   "415": {"description": "The body has another type", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/OpenAIError"}}}},
   "429": {"description": "Too many requests; see Retry-After", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/OpenAIError"}}}},
   "500": {"description": "The server's own failure", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/OpenAIError"}}}},
   "503": {"description": "Loading or stopping; see Retry-After", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/OpenAIError"}}}},
   "504": {"description": "The time for the request is over", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/OpenAIError"}}}}}
 }},
 "/embed": {"post": {
  "summary": "Vectors of texts (text-embeddings-inference)",
  "tags": ["embeddings"],
  "parameters": [{"$ref": "#/components/parameters/Timeout"}],
  "requestBody": {"required": true, "content": {"application/json": {"schema": {"type": "object", "properties": {"model": {"type": "string"}, "inputs": {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}, "normalize": {"type": "boolean"}, "truncate": {"type": "boolean"}, "truncation_direction": {"type": "string"}, "timeout": {"type": "number"}}, "required": ["inputs"], "additionalProperties": false}}}},
  "responses": {
   "200": {"description": "The answer", "content": {"application/json": {"schema": {"type": "array", "items": {"type": "array", "items": {"type": "number"}}}}}},
   "401": {"description": "The API key is missing or not known", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/EmbeddingsError"}}}},
   "404": {"description": "There is no such model", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/EmbeddingsError"}}}},
   "413": {"description": "The text or the body is too long", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/EmbeddingsError"}}}},
   "415": {"description": "The body has another type", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/EmbeddingsError"}}}},
   "422": {"description": "What is wrong, with the field's name", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/EmbeddingsError"}}}},
   "429": {"description": "Too many requests; see Retry-After", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/EmbeddingsError"}}}},
   "500": {"description": "The server's own failure", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/EmbeddingsError"}}}},
   "503": {"description": "Loading or stopping; see Retry-After", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/EmbeddingsError"}}}},
   "504": {"description": "The time for the request is over", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/EmbeddingsError"}}}}}
 }},
 "/predict": {"post": {
  "summary": "Labels of texts (text-embeddings-inference)",
  "tags": ["classification"],
  "parameters": [{"$ref": "#/components/parameters/Timeout"}],
  "requestBody": {"required": true, "content": {"application/json": {"schema": {"type": "object", "properties": {"model": {"type": "string"}, "inputs": {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}, "raw_scores": {"type": "boolean"}, "truncate": {"type": "boolean"}, "truncation_direction": {"type": "string"}, "timeout": {"type": "number"}}, "required": ["inputs"], "additionalProperties": false}}}},
  "responses": {
   "200": {"description": "The answer", "content": {"application/json": {"schema": {"oneOf": [{"type": "array", "items": {"$ref": "#/components/schemas/Label"}}, {"type": "array", "items": {"type": "array", "items": {"$ref": "#/components/schemas/Label"}}}]}}}},
   "401": {"description": "The API key is missing or not known", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/EmbeddingsError"}}}},
   "404": {"description": "There is no such model", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/EmbeddingsError"}}}},
   "413": {"description": "The text or the body is too long", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/EmbeddingsError"}}}},
   "415": {"description": "The body has another type", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/EmbeddingsError"}}}},
   "422": {"description": "What is wrong, with the field's name", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/EmbeddingsError"}}}},
   "429": {"description": "Too many requests; see Retry-After", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/EmbeddingsError"}}}},
   "500": {"description": "The server's own failure", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/EmbeddingsError"}}}},
   "503": {"description": "Loading or stopping; see Retry-After", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/EmbeddingsError"}}}},
   "504": {"description": "The time for the request is over", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/EmbeddingsError"}}}}}
 }},
 "/tokenize": {"post": {
  "summary": "Tokens of texts (text-embeddings-inference)",
  "tags": ["embeddings"],
  "parameters": [{"$ref": "#/components/parameters/Timeout"}],
  "requestBody": {"required": true, "content": {"application/json": {"schema": {"type": "object", "properties": {"model": {"type": "string"}, "inputs": {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}, "add_special_tokens": {"type": "boolean"}}, "required": ["inputs"], "additionalProperties": false}}}},
  "responses": {
   "200": {"description": "The answer", "content": {"application/json": {"schema": {"type": "array", "items": {"type": "array", "items": {"type": "object", "properties": {"id": {"type": "integer"}, "text": {"type": "string"}, "special": {"type": "boolean"}}, "required": ["id", "text", "special"]}}}}}},
   "401": {"description": "The API key is missing or not known", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/EmbeddingsError"}}}},
   "404": {"description": "There is no such model", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/EmbeddingsError"}}}},
   "413": {"description": "The text or the body is too long", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/EmbeddingsError"}}}},
   "415": {"description": "The body has another type", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/EmbeddingsError"}}}},
   "422": {"description": "What is wrong, with the field's name", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/EmbeddingsError"}}}},
   "429": {"description": "Too many requests; see Retry-After", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/EmbeddingsError"}}}},
   "500": {"description": "The server's own failure", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/EmbeddingsError"}}}},
   "503": {"description": "Loading or stopping; see Retry-After", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/EmbeddingsError"}}}},
   "504": {"description": "The time for the request is over", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/EmbeddingsError"}}}}}
 }},
 "/info": {"get": {
  "summary": "Models and limits",
  "tags": ["embeddings"],
  "responses": {
   "200": {"description": "The answer", "content": {"application/json": {"schema": {"type": "object"}}}},
   "401": {"description": "The API key is missing or not known", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/EmbeddingsError"}}}},
   "503": {"description": "Loading or stopping; see Retry-After", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/EmbeddingsError"}}}}}
 }}
},
"components": {
 "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
 "parameters": {"Timeout": {"name": "X-Timeout", "in": "header", "required": false, "description": "Seconds after which the request ends", "schema": {"type": "number", "minimum": 0, "exclusiveMinimum": true}}},
 "schemas": {
  "Error": {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]},
  "OpenAIError": {"type": "object", "properties": {"error": {"type": "object", "properties": {"message": {"type": "string"}, "type": {"type": "string"}, "param": {"type": "string", "nullable": true}, "code": {"type": "string", "nullable": true}}, "required": ["message", "type"]}}, "required": ["error"]},
  "EmbeddingsError": {"type": "object", "properties": {"error": {"type": "string"}, "error_type": {"type": "string"}}, "required": ["error", "error_type"]},
  "Detected": {"type": "object", "properties": {"language": {"type": "string"}, "confidence": {"type": "number"}}, "required": ["language", "confidence"]},
  "Label": {"type": "object", "properties": {"label": {"type": "string"}, "score": {"type": "number"}}, "required": ["label", "score"]},
  "Sentence": {"type": "object", "properties": {"source": {"type": "string"}, "space_after": {"type": "string"}, "cut_short": {"type": "string"}, "n_best": {"type": "array", "items": {"type": "object", "properties": {"text": {"type": "string"}, "score": {"type": "number"}, "log_probability": {"type": "number"}, "finished": {"type": "boolean"}, "tokens": {"type": "array", "items": {"type": "string"}}, "token_log_probabilities": {"type": "array", "items": {"type": "number"}}, "alignment": {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}}}, "required": ["text", "score", "log_probability", "finished"]}}}, "required": ["source", "n_best"]}
 }
}
})json";
}
// clang-format on

}  // namespace attune::serve
