// The page sends nothing anywhere: plotly's button that uploads a chart has no address, and is not shown.
const options = {
  responsive: true,
  displaylogo: false,
  plotlyServerURL: "",
  modeBarButtonsToRemove: ["sendChartToCloud", "select2d", "lasso2d", "autoScale2d"],
};
for (const place of document.querySelectorAll(".plot")) {
  const figure = JSON.parse(place.querySelector("script").textContent);
  place.replaceChildren();
  const picture = { filename: place.dataset.name, scale: 2 };
  Plotly.newPlot(place, figure.data, figure.layout, { ...options, toImageButtonOptions: picture });
}
