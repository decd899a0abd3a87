# The page in a container, for visitors who choose among the shipped models. docs/deploy.md says how to run it.
FROM python:3.11-slim

RUN useradd --create-home explorer
USER explorer
ENV PATH=/home/explorer/.local/bin:$PATH
WORKDIR /home/explorer/source
COPY --chown=explorer . .
RUN pip install --user --no-cache-dir . ./assets/models

WORKDIR /home/explorer
EXPOSE 7860
CMD ["decoding-explorer", "--host", "0.0.0.0", "--port", "7860", "--models", "embedded"]
