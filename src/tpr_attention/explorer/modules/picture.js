// The current view as a file: SVG or PNG.

/** Save an element as a picture. */
export async function savePicture(place, name, form) {
  void place, name, form;
}
